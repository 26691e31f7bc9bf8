-- When a memory matters, in words that it may not have itself: searched with it. "; " stands between occasions.

ALTER TABLE memory_sources ADD COLUMN occasions TEXT NOT NULL DEFAULT '';  -- as that conversation told it
ALTER TABLE memory_memories ADD COLUMN occasions TEXT NOT NULL DEFAULT '';  -- as all of them together

DROP VIEW memory_search_sources;
CREATE VIEW memory_search_sources AS
SELECT s.tenant, s.agent_id, 'summary' AS kind, s.session_key AS ref, s.project_id AS project_id,
  s.rollout_slug || ' ' || s.memory_sentence || ' ' || s.rollout_summary AS text
FROM memory_stage1 s
UNION ALL
SELECT m.tenant, m.agent_id, 'memory', m.memory_id,
  CASE m.scope WHEN 'user' THEN '*' WHEN 'project' THEN m.scope_id ELSE COALESCE((SELECT s.project_id
    FROM memory_stage1 s WHERE s.tenant = m.tenant AND s.agent_id = m.agent_id AND s.session_key = m.scope_id),
    m.scope_id) END,
  m.text || CASE m.occasions WHEN '' THEN '' ELSE ' ' || m.occasions END
FROM memory_memories m
WHERE NOT EXISTS (SELECT 1 FROM memory_memories n WHERE n.tenant = m.tenant AND n.agent_id = m.agent_id
  AND n.memory_id = m.memory_id AND (n.valid_from > m.valid_from
  OR (n.valid_from = m.valid_from AND n.revision > m.revision)));
