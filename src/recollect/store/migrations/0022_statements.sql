-- What each conversation states of a memory, in its own words and with its own dates. A memory's row follows from these:
-- it says what the conversation said in which the revision was first seen.

ALTER TABLE memory_sources ADD COLUMN kind TEXT NOT NULL DEFAULT '';
ALTER TABLE memory_sources ADD COLUMN text TEXT NOT NULL DEFAULT '';
ALTER TABLE memory_sources ADD COLUMN severity TEXT NOT NULL DEFAULT '';
ALTER TABLE memory_sources ADD COLUMN scope TEXT NOT NULL DEFAULT '';
ALTER TABLE memory_sources ADD COLUMN scope_id {KEY} NOT NULL DEFAULT '';
ALTER TABLE memory_sources ADD COLUMN created_at TEXT NOT NULL DEFAULT '';
ALTER TABLE memory_sources ADD COLUMN valid_from {KEY} NOT NULL DEFAULT '';
ALTER TABLE memory_sources ADD COLUMN pinned SMALLINT NOT NULL DEFAULT 0;
ALTER TABLE memory_sources ADD COLUMN user_id {KEY} NOT NULL DEFAULT '';
ALTER TABLE memory_sources ADD COLUMN loosened SMALLINT NOT NULL DEFAULT 0;

-- Until now every conversation wrote down what the memory said.
UPDATE memory_sources SET (kind, text, severity, scope, scope_id, created_at, valid_from, pinned, user_id, loosened) = (
  SELECT m.kind, m.text, m.severity, m.scope, m.scope_id, m.created_at, m.valid_from, m.pinned, m.user_id, m.loosened
  FROM memory_memories m
  WHERE m.tenant = memory_sources.tenant AND m.agent_id = memory_sources.agent_id
    AND m.memory_id = memory_sources.memory_id AND m.revision = memory_sources.revision
)
WHERE EXISTS (
  SELECT 1 FROM memory_memories m
  WHERE m.tenant = memory_sources.tenant AND m.agent_id = memory_sources.agent_id
    AND m.memory_id = memory_sources.memory_id AND m.revision = memory_sources.revision
);
