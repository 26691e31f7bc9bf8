DROP TRIGGER memory_vectors_memory_changed ON memory_memories;
CREATE TRIGGER memory_vectors_memory_changed AFTER UPDATE OF text, scope, scope_id, occasions ON memory_memories
FOR EACH ROW WHEN (OLD.text <> NEW.text OR OLD.scope <> NEW.scope OR OLD.scope_id <> NEW.scope_id
  OR OLD.occasions <> NEW.occasions)
EXECUTE FUNCTION memory_vectors_document_gone();
