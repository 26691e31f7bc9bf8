-- Search: full text over entries, summaries and memories. The indexes themselves are the databases' own.

-- what is searched besides entries: every summary, and the revision of every memory that holds. A memory of the user
-- belongs to no project; that of a conversation belongs to the conversation's project, or to none that has a name.
CREATE VIEW memory_search_sources AS
SELECT s.tenant, s.agent_id, 'summary' AS kind, s.session_key AS ref, s.project_id AS project_id,
  s.rollout_slug || ' ' || s.memory_sentence || ' ' || s.rollout_summary AS text
FROM memory_stage1 s
UNION ALL
SELECT m.tenant, m.agent_id, 'memory', m.memory_id,
  CASE m.scope WHEN 'user' THEN '*' WHEN 'project' THEN m.scope_id ELSE COALESCE((SELECT s.project_id
    FROM memory_stage1 s WHERE s.tenant = m.tenant AND s.agent_id = m.agent_id AND s.session_key = m.scope_id),
    m.scope_id) END,
  m.text
FROM memory_memories m
WHERE NOT EXISTS (SELECT 1 FROM memory_memories n WHERE n.tenant = m.tenant AND n.agent_id = m.agent_id
  AND n.memory_id = m.memory_id AND (n.valid_from > m.valid_from
  OR (n.valid_from = m.valid_from AND n.revision > m.revision)));

-- derived: those texts under a number, as the indexes want it. Triggers follow the rows they come from.
CREATE TABLE memory_search_texts (
  id {SERIAL},
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  kind {KEY} NOT NULL,                     -- summary | memory
  ref {KEY} NOT NULL,                      -- session_key of the summary, id of the memory
  project_id {KEY} NOT NULL,               -- *: holds in every project
  text TEXT NOT NULL
);
CREATE UNIQUE INDEX memory_search_texts_ref ON memory_search_texts (tenant, agent_id, kind, ref);
