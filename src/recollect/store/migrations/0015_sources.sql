-- What a conversation states is found by its key alone: SQLite took the primary key, which holds all that is asked for,
-- and walked every source of the owner.
DROP INDEX memory_sources_session;
CREATE INDEX memory_sources_session ON memory_sources (tenant, agent_id, session_key, memory_id, revision);
