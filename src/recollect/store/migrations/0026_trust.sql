-- How far the words of a memory are trusted: said | chosen | found | noted | passed_on.

ALTER TABLE memory_memories ADD COLUMN trust TEXT NOT NULL DEFAULT 'found';
ALTER TABLE memory_sources ADD COLUMN trust TEXT NOT NULL DEFAULT 'found';

-- What a person wrote down was said; what an agent wrote down is marked as such in its session's id.
UPDATE memory_sources SET trust = 'said' WHERE SUBSTR(session_key, 1, 2) IN ('n-', 'p-');
UPDATE memory_sources SET trust = 'noted' WHERE SUBSTR(session_key, 1, 2) = 'a-';
UPDATE memory_memories SET trust = (
  SELECT s.trust FROM memory_sources s
  WHERE s.tenant = memory_memories.tenant AND s.agent_id = memory_memories.agent_id
    AND s.memory_id = memory_memories.memory_id AND s.revision = memory_memories.revision
  ORDER BY s.loosened, s.created_at, s.valid_from, s.session_key, s.entry_uuid LIMIT 1
)
WHERE EXISTS (
  SELECT 1 FROM memory_sources s
  WHERE s.tenant = memory_memories.tenant AND s.agent_id = memory_memories.agent_id
    AND s.memory_id = memory_memories.memory_id AND s.revision = memory_memories.revision
);
