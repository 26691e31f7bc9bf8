-- The page: what a person looked at.

-- operational: the newest revision of a memory that a person has seen, by looking through what is new
CREATE TABLE memory_seen (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  memory_id {KEY} NOT NULL,
  revision BIGINT NOT NULL,
  seen_at TEXT NOT NULL,
  PRIMARY KEY (tenant, agent_id, memory_id)
);
