-- Entries enter their index again by themselves, behind the ingest or with the next search.
INSERT INTO memory_entry_words (memory_entry_words) VALUES ('delete-all');
INSERT INTO memory_text_words (memory_text_words) VALUES ('delete-all');
INSERT INTO memory_text_words (rowid, text)
SELECT id, search_text(text, tenant, agent_id, project_id) FROM memory_search_texts;
