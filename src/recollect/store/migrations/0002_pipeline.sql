-- The pipeline: what extraction and consolidation keep.

-- derived: what phase 1 made of a conversation; one row per conversation with output
CREATE TABLE memory_stage1 (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  session_key {KEY} NOT NULL,
  source {KEY} NOT NULL,
  session_id {KEY} NOT NULL,
  project TEXT NOT NULL,                   -- working directory
  project_id {KEY} NOT NULL,
  first_message_at {KEY} NOT NULL,
  source_updated_at {KEY} NOT NULL,        -- last message that was extracted
  entry_count BIGINT NOT NULL,
  snapshot TEXT NOT NULL,                  -- hash of the entries that were extracted
  generated_at {KEY} NOT NULL,             -- when the answer was given
  strategy TEXT NOT NULL,                  -- how: strategy, prompt version, model
  parts BIGINT NOT NULL,                   -- a long conversation is extracted in parts
  raw_memory TEXT NOT NULL,
  rollout_summary TEXT NOT NULL,
  rollout_slug TEXT NOT NULL,
  memory_sentence TEXT NOT NULL,
  PRIMARY KEY (tenant, agent_id, session_key)
);

-- operational: use of a stage-1 row, and which snapshot of it the last consolidation consumed
CREATE TABLE memory_stage1_use (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  session_key {KEY} NOT NULL,
  usage_count BIGINT NOT NULL,
  last_usage TEXT NOT NULL,                -- empty: never
  selected_for_phase2 SMALLINT NOT NULL,
  selected_for_phase2_source_updated_at TEXT NOT NULL,
  PRIMARY KEY (tenant, agent_id, session_key)
);

-- derived: every revision of every memory; the current one is that with the newest valid_from
CREATE TABLE memory_memories (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  memory_id {KEY} NOT NULL,                -- hash of scope and statement when first seen
  revision BIGINT NOT NULL,
  kind TEXT NOT NULL,
  text TEXT NOT NULL,                      -- redacted
  severity TEXT NOT NULL,                  -- must | prefer | allow | avoid | do_not | none
  scope TEXT NOT NULL,                     -- user | project | conversation
  scope_id {KEY} NOT NULL,                 -- project_id or session_key; empty for the user
  created_at TEXT NOT NULL,
  valid_from {KEY} NOT NULL,               -- when it was said
  PRIMARY KEY (tenant, agent_id, memory_id, revision)
);
CREATE INDEX memory_memories_scope ON memory_memories (tenant, agent_id, scope, scope_id);

-- derived: the conversations and entries in which a revision was stated
CREATE TABLE memory_sources (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  memory_id {KEY} NOT NULL,
  revision BIGINT NOT NULL,
  session_key {KEY} NOT NULL,
  entry_uuid {KEY} NOT NULL,
  PRIMARY KEY (tenant, agent_id, memory_id, revision, session_key, entry_uuid)
);
CREATE INDEX memory_sources_session ON memory_sources (tenant, agent_id, session_key);

-- operational: how often an agent cited a memory, or a person opened it
CREATE TABLE memory_use (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  memory_id {KEY} NOT NULL,
  usage_count BIGINT NOT NULL,
  last_usage TEXT NOT NULL,
  PRIMARY KEY (tenant, agent_id, memory_id)
);

-- operational: answers that were paid for and not used up yet
CREATE TABLE memory_answers (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  kind {KEY} NOT NULL,                     -- of the job
  job_key {KEY} NOT NULL,
  input_hash {KEY} NOT NULL,               -- of everything that was asked
  answer TEXT NOT NULL,                    -- JSON; redacted
  answered_at TEXT NOT NULL,
  PRIMARY KEY (tenant, agent_id, kind, job_key, input_hash)
);

-- operational: what models cost, per day and job
CREATE TABLE memory_token_accounts (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  day {KEY} NOT NULL,                      -- UTC
  kind {KEY} NOT NULL,
  job_key {KEY} NOT NULL,
  model {KEY} NOT NULL,
  requests BIGINT NOT NULL,
  input_tokens BIGINT NOT NULL,
  output_tokens BIGINT NOT NULL,
  cost_micros BIGINT NOT NULL,             -- millionths of a US dollar
  PRIMARY KEY (tenant, agent_id, day, kind, job_key, model)
);
