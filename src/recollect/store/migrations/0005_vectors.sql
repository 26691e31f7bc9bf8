-- Vectors: what search by meaning goes by.
-- {SEQUENCE} is a generated integer key that is never used again, {VECTOR} a row of numbers.

-- operational: whose vectors answer queries, and whose are being made to take over
CREATE TABLE memory_vector_models (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  model {KEY} NOT NULL,                    -- embedder and version
  dimensions BIGINT NOT NULL,
  status TEXT NOT NULL,                    -- serving | staged
  cache TEXT NOT NULL,                     -- name of the folder with its codes
  created_at TEXT NOT NULL,
  PRIMARY KEY (tenant, agent_id, model)
);

-- derived: vectors of a document, by model. They go when the document goes or changes (triggers).
CREATE TABLE memory_vectors (
  id {SEQUENCE},
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  kind {KEY} NOT NULL,                     -- entry | summary | memory
  ref {KEY} NOT NULL,                      -- session_key of the summary, id of the memory; empty for an entry
  number BIGINT NOT NULL,                  -- id of the entry, revision of the memory; 0 for a summary
  model {KEY} NOT NULL,
  part BIGINT NOT NULL,                    -- 0: the whole text; from 1: its passages
  project_id {KEY} NOT NULL,               -- empty: a memory that holds everywhere
  vector {VECTOR} NOT NULL                 -- of length 1; zeros when there was nothing in the text
);
CREATE UNIQUE INDEX memory_vectors_document ON memory_vectors (tenant, agent_id, kind, ref, number, model, part);
CREATE INDEX memory_vectors_project ON memory_vectors (tenant, agent_id, model, kind, project_id, part);
