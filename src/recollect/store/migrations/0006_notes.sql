-- Notes: what a person pinned, and what they thought of a memory.

-- derived, like the rest of the table: 1 if a person pinned the memory, by this revision or an earlier one
ALTER TABLE memory_memories ADD COLUMN pinned SMALLINT NOT NULL DEFAULT 0;

-- operational: what was thought of a memory; a person's newest reaction replaces the one before
CREATE TABLE memory_feedback (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  memory_id {KEY} NOT NULL,
  ok BIGINT NOT NULL,                      -- how many found it right, the person's reaction included
  not_ok BIGINT NOT NULL,
  user_reaction TEXT NOT NULL,             -- ok | not_ok; empty: none
  last TEXT NOT NULL,                      -- when somebody last reacted
  PRIMARY KEY (tenant, agent_id, memory_id)
);
