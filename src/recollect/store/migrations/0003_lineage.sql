-- Lineage: what stands in canonical files.

-- derived: one row per artifact on disk, as it was when its content was last taken into the other tables
CREATE TABLE memory_artifacts (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  source_path {KEY} NOT NULL,              -- relative to RECOLLECT_HOME
  source_sha256 TEXT NOT NULL,             -- of the normalised body
  source_kind TEXT NOT NULL,               -- transcript | summary | compaction | manifest
  session_token {KEY} NOT NULL,
  session_key {KEY} NOT NULL,
  session_id {KEY} NOT NULL,
  harness TEXT NOT NULL,
  project TEXT NOT NULL,
  project_id {KEY} NOT NULL,
  captured_at {KEY} NOT NULL,
  ended_at TEXT NOT NULL,                  -- empty: it may still grow
  manifest_path TEXT NOT NULL,
  memory_sentence TEXT NOT NULL,           -- empty for a manifest
  is_current SMALLINT NOT NULL,            -- 1: the manifest, or what it points at
  signature TEXT NOT NULL,                 -- of stat: unchanged means nothing to read
  PRIMARY KEY (tenant, agent_id, source_path)
);
CREATE INDEX memory_artifacts_session ON memory_artifacts (tenant, agent_id, session_key);
-- with all that chooses the rows of MEMORY.md, so that it is not looked up one by one
CREATE INDEX memory_artifacts_time ON memory_artifacts
  (tenant, agent_id, source_kind, is_current, captured_at, ended_at, session_id, source_path);

-- derived: what must never come back, from the tombstones on disk; hashes only
CREATE TABLE memory_tombstones (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  hash {KEY} NOT NULL,                     -- of an entry's id, or of its session, role and text
  source_path {KEY} NOT NULL,              -- the tombstone
  PRIMARY KEY (tenant, agent_id, hash)
);
