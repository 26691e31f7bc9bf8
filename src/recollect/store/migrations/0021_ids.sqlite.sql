-- What is stored stays as it is, so no table is copied. The table that comes and goes has other connections read the
-- schema anew.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'id INTEGER PRIMARY KEY', 'id INTEGER PRIMARY KEY AUTOINCREMENT')
WHERE type = 'table' AND name IN ('memory_transcript_entries', 'memory_conversations', 'memory_search_texts');
PRAGMA writable_schema = RESET;
CREATE TABLE memory_passing (id INTEGER);
DROP TABLE memory_passing;
