-- Phase 2 looks at what was extracted lately, and at no text of the rest.

CREATE INDEX memory_stage1_recent ON memory_stage1 (tenant, agent_id, user_id, generated_at);
