CREATE TRIGGER memory_vectors_entry_changed AFTER UPDATE OF content, project_id ON memory_transcript_entries
WHEN OLD.content <> NEW.content OR OLD.project_id <> NEW.project_id BEGIN
  DELETE FROM memory_vectors
  WHERE tenant = OLD.tenant AND agent_id = OLD.agent_id AND kind = 'entry' AND ref = '' AND number = OLD.id;
END;
CREATE TRIGGER memory_vectors_entry_gone AFTER DELETE ON memory_transcript_entries BEGIN
  DELETE FROM memory_vectors
  WHERE tenant = OLD.tenant AND agent_id = OLD.agent_id AND kind = 'entry' AND ref = '' AND number = OLD.id;
END;
CREATE TRIGGER memory_vectors_summary_changed
AFTER UPDATE OF rollout_summary, memory_sentence, project_id ON memory_stage1
WHEN OLD.rollout_summary <> NEW.rollout_summary OR OLD.memory_sentence <> NEW.memory_sentence
  OR OLD.project_id <> NEW.project_id BEGIN
  DELETE FROM memory_vectors
  WHERE tenant = OLD.tenant AND agent_id = OLD.agent_id AND kind = 'summary' AND ref = OLD.session_key;
END;
CREATE TRIGGER memory_vectors_summary_gone AFTER DELETE ON memory_stage1 BEGIN
  DELETE FROM memory_vectors
  WHERE tenant = OLD.tenant AND agent_id = OLD.agent_id AND kind = 'summary' AND ref = OLD.session_key;
END;
CREATE TRIGGER memory_vectors_memory_changed AFTER UPDATE OF text, scope, scope_id ON memory_memories
WHEN OLD.text <> NEW.text OR OLD.scope <> NEW.scope OR OLD.scope_id <> NEW.scope_id BEGIN
  DELETE FROM memory_vectors
  WHERE tenant = OLD.tenant AND agent_id = OLD.agent_id AND kind = 'memory' AND ref = OLD.memory_id
    AND number = OLD.revision;
END;
CREATE TRIGGER memory_vectors_memory_gone AFTER DELETE ON memory_memories BEGIN
  DELETE FROM memory_vectors
  WHERE tenant = OLD.tenant AND agent_id = OLD.agent_id AND kind = 'memory' AND ref = OLD.memory_id
    AND number = OLD.revision;
END;
