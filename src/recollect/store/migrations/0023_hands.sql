-- What nobody's hand is recorded of binds nothing: notes of versions that gave a person's and an agent's note the same
-- kind of id, and what was read without a model in a chat, where files do not tell it from what its user asserted.

UPDATE memory_sources SET severity = 'none', loosened = 1
WHERE severity IN ('must', 'do_not', 'avoid')
  AND EXISTS (
    SELECT 1 FROM memory_stage1 t WHERE t.tenant = memory_sources.tenant AND t.agent_id = memory_sources.agent_id
      AND t.session_key = memory_sources.session_key
      AND (t.strategy = 'notes-v1' AND t.session_id LIKE 'n-%'
        OR t.strategy LIKE 'turns-v1+offline-v%' AND t.strategy <> 'turns-v1+offline-v9')
  );

-- A memory says what the first of its sources says; those that were loosened come last.
UPDATE memory_memories SET (kind, text, severity, scope, scope_id, valid_from, loosened) = (
  SELECT s.kind, s.text, s.severity, s.scope, s.scope_id, s.valid_from, s.loosened FROM memory_sources s
  WHERE s.tenant = memory_memories.tenant AND s.agent_id = memory_memories.agent_id
    AND s.memory_id = memory_memories.memory_id AND s.revision = memory_memories.revision
  ORDER BY s.loosened, s.created_at, s.valid_from, s.session_key, s.entry_uuid LIMIT 1
)
WHERE EXISTS (
  SELECT 1 FROM memory_sources s
  WHERE s.tenant = memory_memories.tenant AND s.agent_id = memory_memories.agent_id
    AND s.memory_id = memory_memories.memory_id AND s.revision = memory_memories.revision AND s.loosened = 1
);
