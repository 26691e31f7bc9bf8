-- Consolidation: which of several readings of a conversation the last one consumed. Ingest: files to look at again.

-- one that was read again has other memories and the same last message
ALTER TABLE memory_stage1_use ADD COLUMN selected_for_phase2_generated_at TEXT NOT NULL DEFAULT '';
UPDATE memory_stage1_use SET selected_for_phase2_generated_at = COALESCE(
  (SELECT s.generated_at FROM memory_stage1 s
   WHERE s.tenant = memory_stage1_use.tenant AND s.agent_id = memory_stage1_use.agent_id
   AND s.session_key = memory_stage1_use.session_key
   AND s.source_updated_at = memory_stage1_use.selected_for_phase2_source_updated_at),
  selected_for_phase2_source_updated_at)
WHERE selected_for_phase2 = 1;

-- a very long first line could not be told: such files are looked at once more
DELETE FROM memory_file_states WHERE source = 'unknown';
