-- A user of a chat is a scope: what they said, and what was made of it, is theirs alone. Empty: the owner's own.

ALTER TABLE memory_transcript_entries ADD COLUMN user_id {KEY} NOT NULL DEFAULT '';
ALTER TABLE memory_conversations ADD COLUMN user_id {KEY} NOT NULL DEFAULT '';
ALTER TABLE memory_stage1 ADD COLUMN user_id {KEY} NOT NULL DEFAULT '';
ALTER TABLE memory_memories ADD COLUMN user_id {KEY} NOT NULL DEFAULT '';
ALTER TABLE memory_search_texts ADD COLUMN user_id {KEY} NOT NULL DEFAULT '';

DROP INDEX memory_memories_scope;
CREATE INDEX memory_memories_scope ON memory_memories (tenant, agent_id, scope, scope_id, user_id);
DROP INDEX memory_memories_pinned;
CREATE INDEX memory_memories_pinned ON memory_memories (tenant, agent_id, user_id, scope_id) WHERE pinned = 1;
DROP INDEX memory_memories_ambient;
CREATE INDEX memory_memories_ambient
  ON memory_memories (tenant, agent_id, scope, scope_id, user_id, kind, valid_from);
CREATE INDEX memory_conversations_user ON memory_conversations (tenant, agent_id, user_id) WHERE user_id <> '';
CREATE INDEX memory_transcript_entries_user ON memory_transcript_entries (tenant, agent_id, user_id) WHERE user_id <> '';
CREATE INDEX memory_memories_user ON memory_memories (tenant, agent_id, user_id) WHERE user_id <> '';

DROP VIEW memory_search_sources;
CREATE VIEW memory_search_sources AS
SELECT s.tenant, s.agent_id, 'summary' AS kind, s.session_key AS ref, s.project_id AS project_id,
  s.rollout_slug || ' ' || s.memory_sentence || ' ' || s.rollout_summary AS text, s.user_id AS user_id
FROM memory_stage1 s
UNION ALL
SELECT m.tenant, m.agent_id, 'memory', m.memory_id,
  CASE m.scope WHEN 'user' THEN '*' WHEN 'project' THEN m.scope_id ELSE COALESCE((SELECT s.project_id
    FROM memory_stage1 s WHERE s.tenant = m.tenant AND s.agent_id = m.agent_id AND s.session_key = m.scope_id),
    m.scope_id) END,
  m.text || CASE m.occasions WHEN '' THEN '' ELSE ' ' || m.occasions END, m.user_id
FROM memory_memories m
WHERE NOT EXISTS (SELECT 1 FROM memory_memories n WHERE n.tenant = m.tenant AND n.agent_id = m.agent_id
  AND n.memory_id = m.memory_id AND (n.valid_from > m.valid_from
  OR (n.valid_from = m.valid_from AND n.revision > m.revision)));
