DROP TRIGGER memory_vectors_memory_changed;
CREATE TRIGGER memory_vectors_memory_changed AFTER UPDATE OF text, scope, scope_id, occasions ON memory_memories
WHEN OLD.text <> NEW.text OR OLD.scope <> NEW.scope OR OLD.scope_id <> NEW.scope_id
  OR OLD.occasions <> NEW.occasions BEGIN
  DELETE FROM memory_vectors
  WHERE tenant = OLD.tenant AND agent_id = OLD.agent_id AND kind = 'memory' AND ref = OLD.memory_id
    AND number = OLD.revision;
END;
