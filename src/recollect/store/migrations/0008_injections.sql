-- Injection: what was given to sessions whose history is not ours to read, and what can be shown of it afterwards.

-- operational: sessions that were given something, or could have been
CREATE TABLE memory_injection_sessions (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  session {KEY} NOT NULL,                  -- the harness's own id
  turns BIGINT NOT NULL,                   -- prompts so far
  blocks BIGINT NOT NULL,                  -- blocks so far
  last TEXT NOT NULL,                      -- when it was last asked for
  PRIMARY KEY (tenant, agent_id, session)
);
CREATE INDEX memory_injection_sessions_last ON memory_injection_sessions (tenant, agent_id, last);

-- operational: the lines of their blocks, by id; what a memory says is not repeated here
CREATE TABLE memory_injected_lines (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  session {KEY} NOT NULL,
  block BIGINT NOT NULL,                   -- its number in the session, from 1
  position BIGINT NOT NULL,                -- of the line in the block, from 1
  turn BIGINT NOT NULL,                    -- prompts of the session when it was given
  given_at TEXT NOT NULL,
  visible SMALLINT NOT NULL,               -- 0: the harness compacted or cleared its history since
  memory_id {KEY} NOT NULL,
  revision BIGINT NOT NULL,
  section TEXT NOT NULL,                   -- pinned | relevant
  score BIGINT NOT NULL,                   -- in thousandths
  reason TEXT NOT NULL,                    -- why it was given
  tokens BIGINT NOT NULL,                  -- of the line
  PRIMARY KEY (tenant, agent_id, session, block, position)
);
CREATE INDEX memory_injected_lines_memory ON memory_injected_lines (tenant, agent_id, memory_id);

CREATE INDEX memory_memories_pinned ON memory_memories (tenant, agent_id, scope_id) WHERE pinned = 1;
CREATE INDEX memory_memories_ambient ON memory_memories (tenant, agent_id, scope, scope_id, kind, valid_from);
