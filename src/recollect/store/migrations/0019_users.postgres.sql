-- The indexes know the user of a row.
ALTER TABLE memory_transcript_entries DROP COLUMN words;
ALTER TABLE memory_transcript_entries ADD COLUMN words tsvector GENERATED ALWAYS AS (memory_search_words(content, tenant,
  agent_id || CASE user_id WHEN '' THEN '' ELSE chr(30) || user_id END, project_id)) STORED;
CREATE INDEX memory_transcript_entries_words ON memory_transcript_entries USING gin (words);
ALTER TABLE memory_search_texts DROP COLUMN words;
ALTER TABLE memory_search_texts ADD COLUMN words tsvector GENERATED ALWAYS AS (memory_search_words(text, tenant,
  agent_id || CASE user_id WHEN '' THEN '' ELSE chr(30) || user_id END, project_id)) STORED;
CREATE INDEX memory_search_texts_words ON memory_search_texts USING gin (words);

CREATE OR REPLACE FUNCTION memory_search_follow(owner_tenant TEXT, owner_agent TEXT, what TEXT, which TEXT) RETURNS void
LANGUAGE sql AS $$
  DELETE FROM memory_search_texts
  WHERE tenant = owner_tenant AND agent_id = owner_agent AND kind = what AND ref = which;
  INSERT INTO memory_search_texts (tenant, agent_id, kind, ref, project_id, user_id, text)
  SELECT tenant, agent_id, kind, ref, project_id, user_id, text FROM memory_search_sources
  WHERE tenant = owner_tenant AND agent_id = owner_agent AND kind = what AND ref = which
  ON CONFLICT (tenant, agent_id, kind, ref) DO UPDATE SET project_id = excluded.project_id,
    user_id = excluded.user_id, text = excluded.text;
$$;

DROP TRIGGER memory_vectors_entry_changed ON memory_transcript_entries;
CREATE TRIGGER memory_vectors_entry_changed AFTER UPDATE OF content, project_id, user_id ON memory_transcript_entries
FOR EACH ROW WHEN (OLD.content <> NEW.content OR OLD.project_id <> NEW.project_id OR OLD.user_id <> NEW.user_id)
EXECUTE FUNCTION memory_vectors_document_gone();
DROP TRIGGER memory_vectors_summary_changed ON memory_stage1;
CREATE TRIGGER memory_vectors_summary_changed
AFTER UPDATE OF rollout_summary, memory_sentence, project_id, user_id ON memory_stage1
FOR EACH ROW WHEN (OLD.rollout_summary <> NEW.rollout_summary OR OLD.memory_sentence <> NEW.memory_sentence
  OR OLD.project_id <> NEW.project_id OR OLD.user_id <> NEW.user_id)
EXECUTE FUNCTION memory_vectors_document_gone();
DROP TRIGGER memory_vectors_memory_changed ON memory_memories;
CREATE TRIGGER memory_vectors_memory_changed AFTER UPDATE OF text, scope, scope_id, occasions, user_id ON memory_memories
FOR EACH ROW WHEN (OLD.text <> NEW.text OR OLD.scope <> NEW.scope OR OLD.scope_id <> NEW.scope_id
  OR OLD.occasions <> NEW.occasions OR OLD.user_id <> NEW.user_id)
EXECUTE FUNCTION memory_vectors_document_gone();

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
