-- The indexes know the user of a row.
DROP TRIGGER memory_entry_words_gone;
CREATE TRIGGER memory_entry_words_gone AFTER DELETE ON memory_transcript_entries
WHEN EXISTS (SELECT 1 FROM memory_entry_words_docsize WHERE id = OLD.id) BEGIN
  INSERT INTO memory_entry_words (memory_entry_words, rowid, content)
  VALUES ('delete', OLD.id, search_text(OLD.content, OLD.tenant, OLD.agent_id, OLD.project_id, OLD.user_id));
END;
DROP TRIGGER memory_entry_words_changed;
CREATE TRIGGER memory_entry_words_changed
AFTER UPDATE OF content, tenant, agent_id, project_id, user_id ON memory_transcript_entries
WHEN (OLD.content <> NEW.content OR OLD.project_id <> NEW.project_id OR OLD.tenant <> NEW.tenant
  OR OLD.agent_id <> NEW.agent_id OR OLD.user_id <> NEW.user_id)
  AND EXISTS (SELECT 1 FROM memory_entry_words_docsize WHERE id = OLD.id) BEGIN
  INSERT INTO memory_entry_words (memory_entry_words, rowid, content)
  VALUES ('delete', OLD.id, search_text(OLD.content, OLD.tenant, OLD.agent_id, OLD.project_id, OLD.user_id));
  INSERT INTO memory_entry_words (rowid, content)
  VALUES (NEW.id, search_text(NEW.content, NEW.tenant, NEW.agent_id, NEW.project_id, NEW.user_id));
END;
DROP TRIGGER memory_search_texts_new;
CREATE TRIGGER memory_search_texts_new AFTER INSERT ON memory_search_texts BEGIN
  INSERT INTO memory_text_words (rowid, text)
  VALUES (NEW.id, search_text(NEW.text, NEW.tenant, NEW.agent_id, NEW.project_id, NEW.user_id));
END;
DROP TRIGGER memory_search_texts_gone;
CREATE TRIGGER memory_search_texts_gone AFTER DELETE ON memory_search_texts BEGIN
  INSERT INTO memory_text_words (memory_text_words, rowid, text)
  VALUES ('delete', OLD.id, search_text(OLD.text, OLD.tenant, OLD.agent_id, OLD.project_id, OLD.user_id));
END;

DROP TRIGGER memory_search_summary_new;
CREATE TRIGGER memory_search_summary_new AFTER INSERT ON memory_stage1 BEGIN
  DELETE FROM memory_search_texts
  WHERE tenant = NEW.tenant AND agent_id = NEW.agent_id AND kind = 'summary' AND ref = NEW.session_key;
  INSERT INTO memory_search_texts (tenant, agent_id, kind, ref, project_id, user_id, text)
  SELECT tenant, agent_id, kind, ref, project_id, user_id, text FROM memory_search_sources
  WHERE tenant = NEW.tenant AND agent_id = NEW.agent_id AND kind = 'summary' AND ref = NEW.session_key;
END;
DROP TRIGGER memory_search_summary_changed;
CREATE TRIGGER memory_search_summary_changed AFTER UPDATE ON memory_stage1 BEGIN
  DELETE FROM memory_search_texts
  WHERE tenant = NEW.tenant AND agent_id = NEW.agent_id AND kind = 'summary' AND ref = NEW.session_key;
  INSERT INTO memory_search_texts (tenant, agent_id, kind, ref, project_id, user_id, text)
  SELECT tenant, agent_id, kind, ref, project_id, user_id, text FROM memory_search_sources
  WHERE tenant = NEW.tenant AND agent_id = NEW.agent_id AND kind = 'summary' AND ref = NEW.session_key;
END;
DROP TRIGGER memory_search_memory_new;
CREATE TRIGGER memory_search_memory_new AFTER INSERT ON memory_memories BEGIN
  DELETE FROM memory_search_texts
  WHERE tenant = NEW.tenant AND agent_id = NEW.agent_id AND kind = 'memory' AND ref = NEW.memory_id;
  INSERT INTO memory_search_texts (tenant, agent_id, kind, ref, project_id, user_id, text)
  SELECT tenant, agent_id, kind, ref, project_id, user_id, text FROM memory_search_sources
  WHERE tenant = NEW.tenant AND agent_id = NEW.agent_id AND kind = 'memory' AND ref = NEW.memory_id;
END;
DROP TRIGGER memory_search_memory_changed;
CREATE TRIGGER memory_search_memory_changed AFTER UPDATE ON memory_memories BEGIN
  DELETE FROM memory_search_texts
  WHERE tenant = NEW.tenant AND agent_id = NEW.agent_id AND kind = 'memory' AND ref = NEW.memory_id;
  INSERT INTO memory_search_texts (tenant, agent_id, kind, ref, project_id, user_id, text)
  SELECT tenant, agent_id, kind, ref, project_id, user_id, text FROM memory_search_sources
  WHERE tenant = NEW.tenant AND agent_id = NEW.agent_id AND kind = 'memory' AND ref = NEW.memory_id;
END;
DROP TRIGGER memory_search_memory_gone;
CREATE TRIGGER memory_search_memory_gone AFTER DELETE ON memory_memories BEGIN
  DELETE FROM memory_search_texts
  WHERE tenant = OLD.tenant AND agent_id = OLD.agent_id AND kind = 'memory' AND ref = OLD.memory_id;
  INSERT INTO memory_search_texts (tenant, agent_id, kind, ref, project_id, user_id, text)
  SELECT tenant, agent_id, kind, ref, project_id, user_id, text FROM memory_search_sources
  WHERE tenant = OLD.tenant AND agent_id = OLD.agent_id AND kind = 'memory' AND ref = OLD.memory_id;
END;

DROP TRIGGER memory_vectors_entry_changed;
CREATE TRIGGER memory_vectors_entry_changed AFTER UPDATE OF content, project_id, user_id ON memory_transcript_entries
WHEN OLD.content <> NEW.content OR OLD.project_id <> NEW.project_id OR OLD.user_id <> NEW.user_id BEGIN
  DELETE FROM memory_vectors
  WHERE tenant = OLD.tenant AND agent_id = OLD.agent_id AND kind = 'entry' AND ref = '' AND number = OLD.id;
END;
DROP TRIGGER memory_vectors_summary_changed;
CREATE TRIGGER memory_vectors_summary_changed
AFTER UPDATE OF rollout_summary, memory_sentence, project_id, user_id ON memory_stage1
WHEN OLD.rollout_summary <> NEW.rollout_summary OR OLD.memory_sentence <> NEW.memory_sentence
  OR OLD.project_id <> NEW.project_id OR OLD.user_id <> NEW.user_id BEGIN
  DELETE FROM memory_vectors
  WHERE tenant = OLD.tenant AND agent_id = OLD.agent_id AND kind = 'summary' AND ref = OLD.session_key;
END;
DROP TRIGGER memory_vectors_memory_changed;
CREATE TRIGGER memory_vectors_memory_changed
AFTER UPDATE OF text, scope, scope_id, occasions, user_id ON memory_memories
WHEN OLD.text <> NEW.text OR OLD.scope <> NEW.scope OR OLD.scope_id <> NEW.scope_id
  OR OLD.occasions <> NEW.occasions OR OLD.user_id <> NEW.user_id BEGIN
  DELETE FROM memory_vectors
  WHERE tenant = OLD.tenant AND agent_id = OLD.agent_id AND kind = 'memory' AND ref = OLD.memory_id
    AND number = OLD.revision;
END;

-- What was said in chats belongs to who said it, by the rows of its turns. A blank, also for memories that chats state and
-- notes about these: nobody is told of it until `process` or `reindex` finds out whose it is.
UPDATE memory_conversations SET user_id = COALESCE((SELECT MIN(t.user_id) FROM memory_turn_artifacts t
  WHERE t.tenant = memory_conversations.tenant AND t.agent_id = memory_conversations.agent_id
  AND t.session_id = memory_conversations.session_id), ' ')
WHERE source = 'recollect' AND session_id LIKE '%.%';
UPDATE memory_memories SET user_id = ' ' WHERE EXISTS (SELECT 1 FROM memory_sources s JOIN memory_conversations c
  ON c.tenant = s.tenant AND c.agent_id = s.agent_id AND c.session_key = s.session_key
  WHERE s.tenant = memory_memories.tenant AND s.agent_id = memory_memories.agent_id
  AND s.memory_id = memory_memories.memory_id AND c.user_id <> '');
UPDATE memory_conversations SET user_id = ' '
WHERE source = 'recollect' AND user_id = '' AND EXISTS (SELECT 1 FROM memory_sources s JOIN memory_memories m
  ON m.tenant = s.tenant AND m.agent_id = s.agent_id AND m.memory_id = s.memory_id AND m.revision = s.revision
  WHERE s.tenant = memory_conversations.tenant AND s.agent_id = memory_conversations.agent_id
  AND s.session_key = memory_conversations.session_key AND s.revision > 1 AND m.user_id = ' ');
UPDATE memory_transcript_entries SET user_id = COALESCE((SELECT MAX(c.user_id) FROM memory_conversations c
  WHERE c.tenant = memory_transcript_entries.tenant AND c.agent_id = memory_transcript_entries.agent_id
  AND c.source = 'recollect' AND c.source_file = memory_transcript_entries.source_file
  AND c.session_id = memory_transcript_entries.session_id), ' ')
WHERE source = 'recollect';
UPDATE memory_stage1 SET user_id = COALESCE((SELECT MAX(c.user_id) FROM memory_conversations c
  WHERE c.tenant = memory_stage1.tenant AND c.agent_id = memory_stage1.agent_id
  AND c.session_key = memory_stage1.session_key), ' ')
WHERE source = 'recollect';
