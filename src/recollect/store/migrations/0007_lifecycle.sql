-- Lineage: which file a compaction has, and what MEMORY.md begins with, without reading everything.

ALTER TABLE memory_artifacts ADD COLUMN source_node_id {KEY} NOT NULL DEFAULT '';  -- of a compaction: its uuid
CREATE INDEX memory_artifacts_node ON memory_artifacts (tenant, agent_id, source_node_id) WHERE source_node_id <> '';

CREATE INDEX memory_memories_kind ON memory_memories (tenant, agent_id, kind, valid_from);
CREATE INDEX memory_memories_severity ON memory_memories (tenant, agent_id, severity, valid_from);
