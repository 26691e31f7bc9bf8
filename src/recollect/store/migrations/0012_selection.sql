-- Consolidation: which of several readings of a conversation the last one consumed.

-- one that was read again has other memories and the same last message
ALTER TABLE memory_stage1_use ADD COLUMN selected_for_phase2_generated_at TEXT NOT NULL DEFAULT '';
