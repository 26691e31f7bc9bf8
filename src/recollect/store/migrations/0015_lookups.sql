-- What is asked for is looked up, and not searched among all that an owner has.

-- with all that is asked for: SQLite took the primary key, which has it, and walked every source of the owner
DROP INDEX memory_sources_session;
CREATE INDEX memory_sources_session ON memory_sources (tenant, agent_id, session_key, memory_id, revision);

-- kind and state once more, though the condition names them: for more columns SQLite took the index by time
DROP INDEX memory_artifacts_project;
CREATE INDEX memory_artifacts_project ON memory_artifacts
  (tenant, agent_id, project_id, source_kind, is_current, captured_at)
  WHERE source_kind = 'summary' AND is_current = 1;
