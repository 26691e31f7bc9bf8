-- The daemon: which memories an agent cited, and the last conversations of a project.

-- operational: ids of memories in what an assistant said, noted with the entry; each counts as use once
CREATE TABLE memory_citations (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  source {KEY} NOT NULL,
  entry_uuid {KEY} NOT NULL,
  memory_id {KEY} NOT NULL,
  counted SMALLINT NOT NULL,               -- 1: its use was counted
  PRIMARY KEY (tenant, agent_id, source, entry_uuid, memory_id)
);
CREATE INDEX memory_citations_waiting ON memory_citations (tenant, agent_id, memory_id) WHERE counted = 0;

CREATE INDEX memory_artifacts_project ON memory_artifacts (tenant, agent_id, project_id, captured_at)
  WHERE source_kind = 'summary' AND is_current = 1;
