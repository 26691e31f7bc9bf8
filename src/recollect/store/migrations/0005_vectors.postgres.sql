CREATE FUNCTION memory_vectors_document_gone() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF TG_TABLE_NAME = 'memory_transcript_entries' THEN
    DELETE FROM memory_vectors
    WHERE tenant = OLD.tenant AND agent_id = OLD.agent_id AND kind = 'entry' AND ref = '' AND number = OLD.id;
  ELSIF TG_TABLE_NAME = 'memory_stage1' THEN
    DELETE FROM memory_vectors
    WHERE tenant = OLD.tenant AND agent_id = OLD.agent_id AND kind = 'summary' AND ref = OLD.session_key;
  ELSE
    DELETE FROM memory_vectors
    WHERE tenant = OLD.tenant AND agent_id = OLD.agent_id AND kind = 'memory' AND ref = OLD.memory_id
      AND number = OLD.revision;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER memory_vectors_entry_changed AFTER UPDATE OF content, project_id ON memory_transcript_entries
FOR EACH ROW WHEN (OLD.content <> NEW.content OR OLD.project_id <> NEW.project_id)
EXECUTE FUNCTION memory_vectors_document_gone();
CREATE TRIGGER memory_vectors_entry_gone AFTER DELETE ON memory_transcript_entries
FOR EACH ROW EXECUTE FUNCTION memory_vectors_document_gone();
CREATE TRIGGER memory_vectors_summary_changed
AFTER UPDATE OF rollout_summary, memory_sentence, project_id ON memory_stage1
FOR EACH ROW WHEN (OLD.rollout_summary <> NEW.rollout_summary OR OLD.memory_sentence <> NEW.memory_sentence
  OR OLD.project_id <> NEW.project_id)
EXECUTE FUNCTION memory_vectors_document_gone();
CREATE TRIGGER memory_vectors_summary_gone AFTER DELETE ON memory_stage1
FOR EACH ROW EXECUTE FUNCTION memory_vectors_document_gone();
CREATE TRIGGER memory_vectors_memory_changed AFTER UPDATE OF text, scope, scope_id ON memory_memories
FOR EACH ROW WHEN (OLD.text <> NEW.text OR OLD.scope <> NEW.scope OR OLD.scope_id <> NEW.scope_id)
EXECUTE FUNCTION memory_vectors_document_gone();
CREATE TRIGGER memory_vectors_memory_gone AFTER DELETE ON memory_memories
FOR EACH ROW EXECUTE FUNCTION memory_vectors_document_gone();
