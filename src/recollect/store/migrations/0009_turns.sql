-- Turn memory: what is read before a turn, without opening a log.

-- derived: artifacts of chat turns, from the turn logs and bucket files under turns/
CREATE TABLE memory_turn_artifacts (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  project {KEY} NOT NULL,
  user_id {KEY} NOT NULL,
  conversation {KEY} NOT NULL,             -- empty for a bucket: it is the user's
  kind {KEY} NOT NULL,                     -- artifact:turn.log | artifact:turn.fingerprint.v1 | …
  turn_id {KEY} NOT NULL,
  ref {KEY} NOT NULL,                      -- tells several of a kind apart: reactions, buckets
  session_id {KEY} NOT NULL,               -- of its entries
  at {KEY} NOT NULL,
  text TEXT NOT NULL,                      -- JSON
  hosted_uri TEXT NOT NULL,                -- the file it stands in; empty: only here
  expires_at {KEY} NOT NULL,
  PRIMARY KEY (tenant, agent_id, project, user_id, conversation, kind, turn_id, ref)
);
CREATE INDEX memory_turn_artifacts_at
  ON memory_turn_artifacts (tenant, agent_id, project, user_id, conversation, kind, at, turn_id);
CREATE INDEX memory_turn_artifacts_session ON memory_turn_artifacts (tenant, agent_id, session_id, turn_id);
CREATE INDEX memory_turn_artifacts_expires ON memory_turn_artifacts (tenant, agent_id, expires_at);

-- derived: tags of those artifacts, beside their kind, which is one
CREATE TABLE memory_turn_tags (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  project {KEY} NOT NULL,
  user_id {KEY} NOT NULL,
  conversation {KEY} NOT NULL,
  kind {KEY} NOT NULL,
  turn_id {KEY} NOT NULL,
  ref {KEY} NOT NULL,
  tag {KEY} NOT NULL,
  at {KEY} NOT NULL,
  PRIMARY KEY (tenant, agent_id, project, user_id, conversation, kind, turn_id, ref, tag)
);
CREATE INDEX memory_turn_tags_tag ON memory_turn_tags (tenant, agent_id, project, user_id, tag, at, turn_id);

-- derived: turn logs and bucket files as they were when their rows were made
CREATE TABLE memory_turn_files (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  path {KEY} NOT NULL,                     -- below the folder of turn logs
  signature TEXT NOT NULL,                 -- of stat
  PRIMARY KEY (tenant, agent_id, path)
);

-- operational: conversation.active_set.v1, what a conversation has chosen
CREATE TABLE memory_active_sets (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  project {KEY} NOT NULL,
  user_id {KEY} NOT NULL,
  conversation {KEY} NOT NULL,
  session_id {KEY} NOT NULL,
  text TEXT NOT NULL,                      -- JSON
  at TEXT NOT NULL,
  expires_at {KEY} NOT NULL,
  PRIMARY KEY (tenant, agent_id, project, user_id, conversation)
);
CREATE INDEX memory_active_sets_session ON memory_active_sets (tenant, agent_id, session_id);
CREATE INDEX memory_active_sets_expires ON memory_active_sets (tenant, agent_id, expires_at);
