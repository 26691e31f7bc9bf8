-- Presence is all that ranking asks for: no positions. `search_text` adds parts of names and the scope to a text.
-- Entries enter the index in sets, behind the ingest; nothing is triggered by an insert. What was indexed and is
-- changed or deleted leaves it in the same transaction: whoever erases text cannot forget the index.
CREATE VIRTUAL TABLE memory_entry_words USING fts5(content, content='memory_transcript_entries', content_rowid='id',
  tokenize='porter unicode61 remove_diacritics 2', detail=none);
INSERT INTO memory_entry_words (memory_entry_words, rank) VALUES ('secure-delete', 1);
CREATE VIRTUAL TABLE memory_entry_vocabulary USING fts5vocab(memory_entry_words, row);
CREATE TRIGGER memory_entry_words_gone AFTER DELETE ON memory_transcript_entries
WHEN EXISTS (SELECT 1 FROM memory_entry_words_docsize WHERE id = OLD.id) BEGIN
  INSERT INTO memory_entry_words (memory_entry_words, rowid, content)
  VALUES ('delete', OLD.id, search_text(OLD.content, OLD.tenant, OLD.agent_id, OLD.project_id));
END;
CREATE TRIGGER memory_entry_words_changed
AFTER UPDATE OF content, tenant, agent_id, project_id ON memory_transcript_entries
WHEN (OLD.content <> NEW.content OR OLD.project_id <> NEW.project_id OR OLD.tenant <> NEW.tenant
  OR OLD.agent_id <> NEW.agent_id) AND EXISTS (SELECT 1 FROM memory_entry_words_docsize WHERE id = OLD.id) BEGIN
  INSERT INTO memory_entry_words (memory_entry_words, rowid, content)
  VALUES ('delete', OLD.id, search_text(OLD.content, OLD.tenant, OLD.agent_id, OLD.project_id));
  INSERT INTO memory_entry_words (rowid, content)
  VALUES (NEW.id, search_text(NEW.content, NEW.tenant, NEW.agent_id, NEW.project_id));
END;

CREATE VIRTUAL TABLE memory_text_words USING fts5(text, content='memory_search_texts', content_rowid='id',
  tokenize='porter unicode61 remove_diacritics 2', detail=none);
INSERT INTO memory_text_words (memory_text_words, rank) VALUES ('secure-delete', 1);
CREATE VIRTUAL TABLE memory_text_vocabulary USING fts5vocab(memory_text_words, row);
CREATE TRIGGER memory_search_texts_new AFTER INSERT ON memory_search_texts BEGIN
  INSERT INTO memory_text_words (rowid, text)
  VALUES (NEW.id, search_text(NEW.text, NEW.tenant, NEW.agent_id, NEW.project_id));
END;
CREATE TRIGGER memory_search_texts_gone AFTER DELETE ON memory_search_texts BEGIN
  INSERT INTO memory_text_words (memory_text_words, rowid, text)
  VALUES ('delete', OLD.id, search_text(OLD.text, OLD.tenant, OLD.agent_id, OLD.project_id));
END;

CREATE TRIGGER memory_search_summary_new AFTER INSERT ON memory_stage1 BEGIN
  DELETE FROM memory_search_texts
  WHERE tenant = NEW.tenant AND agent_id = NEW.agent_id AND kind = 'summary' AND ref = NEW.session_key;
  INSERT INTO memory_search_texts (tenant, agent_id, kind, ref, project_id, text)
  SELECT tenant, agent_id, kind, ref, project_id, text FROM memory_search_sources
  WHERE tenant = NEW.tenant AND agent_id = NEW.agent_id AND kind = 'summary' AND ref = NEW.session_key;
END;
CREATE TRIGGER memory_search_summary_changed AFTER UPDATE ON memory_stage1 BEGIN
  DELETE FROM memory_search_texts
  WHERE tenant = NEW.tenant AND agent_id = NEW.agent_id AND kind = 'summary' AND ref = NEW.session_key;
  INSERT INTO memory_search_texts (tenant, agent_id, kind, ref, project_id, text)
  SELECT tenant, agent_id, kind, ref, project_id, text FROM memory_search_sources
  WHERE tenant = NEW.tenant AND agent_id = NEW.agent_id AND kind = 'summary' AND ref = NEW.session_key;
END;
CREATE TRIGGER memory_search_summary_gone AFTER DELETE ON memory_stage1 BEGIN
  DELETE FROM memory_search_texts
  WHERE tenant = OLD.tenant AND agent_id = OLD.agent_id AND kind = 'summary' AND ref = OLD.session_key;
END;
CREATE TRIGGER memory_search_memory_new AFTER INSERT ON memory_memories BEGIN
  DELETE FROM memory_search_texts
  WHERE tenant = NEW.tenant AND agent_id = NEW.agent_id AND kind = 'memory' AND ref = NEW.memory_id;
  INSERT INTO memory_search_texts (tenant, agent_id, kind, ref, project_id, text)
  SELECT tenant, agent_id, kind, ref, project_id, text FROM memory_search_sources
  WHERE tenant = NEW.tenant AND agent_id = NEW.agent_id AND kind = 'memory' AND ref = NEW.memory_id;
END;
CREATE TRIGGER memory_search_memory_changed AFTER UPDATE ON memory_memories BEGIN
  DELETE FROM memory_search_texts
  WHERE tenant = NEW.tenant AND agent_id = NEW.agent_id AND kind = 'memory' AND ref = NEW.memory_id;
  INSERT INTO memory_search_texts (tenant, agent_id, kind, ref, project_id, text)
  SELECT tenant, agent_id, kind, ref, project_id, text FROM memory_search_sources
  WHERE tenant = NEW.tenant AND agent_id = NEW.agent_id AND kind = 'memory' AND ref = NEW.memory_id;
END;
CREATE TRIGGER memory_search_memory_gone AFTER DELETE ON memory_memories BEGIN
  DELETE FROM memory_search_texts
  WHERE tenant = OLD.tenant AND agent_id = OLD.agent_id AND kind = 'memory' AND ref = OLD.memory_id;
  INSERT INTO memory_search_texts (tenant, agent_id, kind, ref, project_id, text)
  SELECT tenant, agent_id, kind, ref, project_id, text FROM memory_search_sources
  WHERE tenant = OLD.tenant AND agent_id = OLD.agent_id AND kind = 'memory' AND ref = OLD.memory_id;
END;

INSERT INTO memory_search_texts (tenant, agent_id, kind, ref, project_id, text)
SELECT tenant, agent_id, kind, ref, project_id, text FROM memory_search_sources;
