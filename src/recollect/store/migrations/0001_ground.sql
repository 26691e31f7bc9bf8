-- The ground: files, entries, conversations, projects, jobs.
-- {KEY} is text compared byte by byte, {SERIAL} a generated integer key. Times are ISO-8601 UTC text.
-- Every table says whether it is canonical (never: canonical truth is Markdown), derived or operational.

-- operational: how far each transcript file was read
CREATE TABLE memory_file_states (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  source {KEY} NOT NULL,
  file_path {KEY} NOT NULL,                -- file key: relative to the root it was imported from
  root TEXT NOT NULL,                      -- that root, where the file was last seen
  status TEXT NOT NULL,                    -- idle | ingesting
  last_modified BIGINT NOT NULL,           -- milliseconds
  signature TEXT NOT NULL,                 -- of stat when last processed: unchanged means nothing to do
  file_size BIGINT NOT NULL,               -- at the start of the current or last ingestion: the high-water mark
  last_processed_offset BIGINT NOT NULL,   -- end of the last complete line that was committed (uncompressed bytes)
  last_entry_timestamp TEXT,
  line_count BIGINT NOT NULL,              -- complete lines up to the offset
  malformed_count BIGINT NOT NULL,
  generation BIGINT NOT NULL,              -- a shrunk, replaced or re-imported file starts a new one
  reimporting SMALLINT NOT NULL,           -- 1: entries of older generations go when the end is reached
  head_hash TEXT NOT NULL,                 -- of the first bytes up to the offset
  tail_hash TEXT NOT NULL,                 -- of the last bytes before the offset
  parser_state TEXT NOT NULL,              -- the fold's state at the offset, JSON; cleaned text only
  PRIMARY KEY (tenant, agent_id, source, file_path)
);
CREATE INDEX memory_file_states_ingesting ON memory_file_states (tenant, agent_id, status) WHERE status <> 'idle';

-- operational: lines that could not be understood, the first hundred of each file
CREATE TABLE memory_malformed_lines (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  source {KEY} NOT NULL,
  file_path {KEY} NOT NULL,
  line_offset BIGINT NOT NULL,
  line_number BIGINT NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (tenant, agent_id, source, file_path, line_offset)
);

-- derived: one user or assistant message
CREATE TABLE memory_transcript_entries (
  id {SERIAL},
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  source {KEY} NOT NULL,
  entry_uuid {KEY} NOT NULL,               -- native id, else a hash
  session_id {KEY} NOT NULL,
  source_file {KEY} NOT NULL,              -- file key
  generation BIGINT NOT NULL,              -- of the file, when it was read
  line_offset BIGINT NOT NULL,
  role TEXT NOT NULL,                      -- user | assistant
  content TEXT NOT NULL,                   -- redacted
  tool_names TEXT NOT NULL,                -- comma-separated
  timestamp {KEY} NOT NULL,
  cwd TEXT NOT NULL,
  project_id {KEY} NOT NULL,
  branch TEXT NOT NULL,
  owned SMALLINT NOT NULL,                 -- 1: its file is named after its session
  withdrawn SMALLINT NOT NULL              -- 1: rolled back; out of counts, search and artifacts
);
CREATE UNIQUE INDEX memory_transcript_entries_uuid
  ON memory_transcript_entries (tenant, agent_id, source, entry_uuid);
CREATE INDEX memory_transcript_entries_file
  ON memory_transcript_entries (tenant, agent_id, source_file, timestamp);

-- derived: runs of entries without a pause longer than the gap; members are the entries of the same file and
-- session from first_message_at to last_message_at
CREATE TABLE memory_conversations (
  id {SERIAL},
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  source {KEY} NOT NULL,
  session_id {KEY} NOT NULL,
  source_file {KEY} NOT NULL,
  session_key {KEY} NOT NULL,              -- {{session_id}}@{{first_message_at}}
  project TEXT NOT NULL,                   -- working directory
  project_id {KEY} NOT NULL,
  branch TEXT NOT NULL,
  first_message_at {KEY} NOT NULL,
  last_message_at {KEY} NOT NULL,
  entry_count BIGINT NOT NULL,
  status TEXT NOT NULL,                    -- active | ready | processing | archived | skipped
  status_reason TEXT NOT NULL,
  updated_at TEXT NOT NULL
);
CREATE UNIQUE INDEX memory_conversations_start
  ON memory_conversations (tenant, agent_id, source, source_file, session_id, first_message_at);
CREATE INDEX memory_conversations_status ON memory_conversations (tenant, agent_id, status, last_message_at);
CREATE INDEX memory_conversations_session ON memory_conversations (tenant, agent_id, session_key);

-- derived: summaries by which an agent replaced its own history
CREATE TABLE memory_compactions (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  source {KEY} NOT NULL,
  compaction_uuid {KEY} NOT NULL,
  session_id {KEY} NOT NULL,
  source_file {KEY} NOT NULL,
  generation BIGINT NOT NULL,
  line_offset BIGINT NOT NULL,
  timestamp {KEY} NOT NULL,
  summary TEXT NOT NULL,                   -- redacted
  PRIMARY KEY (tenant, agent_id, source, compaction_uuid)
);

-- derived: which project a working directory belongs to, resolved once
CREATE TABLE memory_projects (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  cwd {KEY} NOT NULL,
  project_id {KEY} NOT NULL,
  resolved_by TEXT NOT NULL,               -- remote | git | path
  resolved_at TEXT NOT NULL,
  PRIMARY KEY (tenant, agent_id, cwd)
);

-- operational: work under leases
CREATE TABLE memory_jobs (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  kind {KEY} NOT NULL,
  job_key {KEY} NOT NULL,
  status TEXT NOT NULL,
  worker TEXT NOT NULL,                    -- who holds or held the lease
  fencing_token BIGINT NOT NULL,           -- rises with every claim
  lease_expires_at TEXT NOT NULL,
  not_before TEXT NOT NULL,                -- earliest next try; empty: at once
  attempts BIGINT NOT NULL,                -- claims since the last success or the last new input
  last_error TEXT NOT NULL,
  input_watermark TEXT NOT NULL,           -- newest input known
  success_watermark TEXT NOT NULL,         -- input that was done
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  PRIMARY KEY (tenant, agent_id, kind, job_key)
);
CREATE INDEX memory_jobs_status ON memory_jobs (tenant, agent_id, kind, status, not_before);
