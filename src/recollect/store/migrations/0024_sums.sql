-- Sums by which rows are noticed that do not follow from their files any more.

-- derived: the sum of what settled conversations' files say, taken when their rows were stored; none: not known
CREATE TABLE memory_sums (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  session_key {KEY} NOT NULL,
  checksum TEXT NOT NULL,
  PRIMARY KEY (tenant, agent_id, session_key)
);
