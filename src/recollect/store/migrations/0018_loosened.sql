-- What was read without a model binds nothing and holds in its project alone: whose words it was read in is not known.

-- 1: its file calls it binding or user-wide, and none of its sources may say so
ALTER TABLE memory_memories ADD COLUMN loosened SMALLINT NOT NULL DEFAULT 0;
CREATE INDEX memory_memories_loosened ON memory_memories (tenant, agent_id) WHERE loosened = 1;

UPDATE memory_memories SET
  loosened = 1,
  severity = CASE WHEN severity IN ('must', 'do_not', 'avoid') THEN 'none' ELSE severity END,
  scope_id = CASE scope WHEN 'user' THEN (
      SELECT t.project_id FROM memory_sources s JOIN memory_stage1 t ON t.tenant = s.tenant
        AND t.agent_id = s.agent_id AND t.session_key = s.session_key
      WHERE s.tenant = memory_memories.tenant AND s.agent_id = memory_memories.agent_id
        AND s.memory_id = memory_memories.memory_id AND s.revision = memory_memories.revision
      ORDER BY t.first_message_at, t.session_key LIMIT 1
    ) ELSE scope_id END,
  scope = CASE scope WHEN 'user' THEN 'project' ELSE scope END
WHERE (severity IN ('must', 'do_not', 'avoid') OR scope = 'user')
  AND EXISTS (
    SELECT 1 FROM memory_sources s
    WHERE s.tenant = memory_memories.tenant AND s.agent_id = memory_memories.agent_id
      AND s.memory_id = memory_memories.memory_id AND s.revision = memory_memories.revision
  )
  AND NOT EXISTS (
    SELECT 1 FROM memory_sources s LEFT JOIN memory_stage1 t ON t.tenant = s.tenant
      AND t.agent_id = s.agent_id AND t.session_key = s.session_key
    WHERE s.tenant = memory_memories.tenant AND s.agent_id = memory_memories.agent_id
      AND s.memory_id = memory_memories.memory_id AND s.revision = memory_memories.revision
      AND (t.strategy IS NULL OR t.strategy NOT LIKE 'offline%')
  );
