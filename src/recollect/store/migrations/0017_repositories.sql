-- Which clone of a repository is whose project on this machine. Folders that are known from before are recorded at the
-- first look at them.

-- operational: git directories (and folders without one) that were seen first, or that a person confirmed
CREATE TABLE memory_repositories (
  tenant {KEY} NOT NULL,
  agent_id {KEY} NOT NULL,
  identity {KEY} NOT NULL,                 -- inode and time of the git directory: it keeps them when it is moved
  project_id {KEY} NOT NULL,
  confirmed SMALLINT NOT NULL,             -- 1: by a person
  recorded_at TEXT NOT NULL,
  PRIMARY KEY (tenant, agent_id, identity)
);
