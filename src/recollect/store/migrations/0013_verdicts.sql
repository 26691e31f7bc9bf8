-- Feedback: what a memory said when a person judged it.

-- the revision that the person's reaction is about; 0: not known, what held when they reacted
ALTER TABLE memory_feedback ADD COLUMN revision BIGINT NOT NULL DEFAULT 0;
