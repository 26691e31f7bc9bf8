ALTER TABLE memory_transcript_entries DROP COLUMN words;
ALTER TABLE memory_search_texts DROP COLUMN words;

-- Letters without their accents. Hangul and kana are put together again.
CREATE FUNCTION memory_search_plain(content TEXT) RETURNS TEXT
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN content ~ '[^\u0001-\u007f]'
    THEN normalize(regexp_replace(normalize(content, NFD), '[\u0300-\u036f]', '', 'g'), NFC) ELSE content END
$$;
-- Of what is written without spaces, every two characters that stand together; then the rest.
CREATE FUNCTION memory_search_pairs(content TEXT) RETURNS TEXT
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN content ~ '[^\u0001-\u0dff]' THEN
    (SELECT COALESCE(string_agg(pair, ' '), '')
      FROM (SELECT letter || lead(letter) OVER (ORDER BY place) AS pair
        FROM unnest(string_to_array(regexp_replace(left(content, 30000),
          '[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd]', '', 'g'), NULL))
          WITH ORDINALITY AS every(letter, place)) AS every
      WHERE pair ~ '^[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]+$')
    || ' ' || regexp_replace(content, '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]+', ' ', 'g')
    ELSE '' END
$$;
CREATE OR REPLACE FUNCTION memory_search_words(content TEXT, tenant TEXT, agent_id TEXT, project_id TEXT)
RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT strip(to_tsvector('pg_catalog.english', regexp_replace(
      plain || ' ' || memory_search_pairs(plain) || CASE WHEN plain ~ '[a-z0-9][A-Z]|[A-Z][A-Z][a-z]'
        THEN ' ' || regexp_replace(regexp_replace(plain, '([a-z0-9])([A-Z])', '\1 \2', 'g'),
          '([A-Z])([A-Z][a-z])', '\1 \2', 'g') ELSE '' END,
      '[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00bf\u2000-\u206f\u3000-\u303f]+', ' ', 'g')))
    || array_to_tsvector(ARRAY[
      'xq' || md5(tenant || chr(31) || agent_id),
      'xq' || md5(tenant || chr(31) || agent_id || chr(31) || project_id)])
  FROM memory_search_plain(left(content, 100000)) AS plain
$$;

ALTER TABLE memory_transcript_entries ADD COLUMN words tsvector
  GENERATED ALWAYS AS (memory_search_words(content, tenant, agent_id, project_id)) STORED;
CREATE INDEX memory_transcript_entries_words ON memory_transcript_entries USING gin (words);
ALTER TABLE memory_search_texts ADD COLUMN words tsvector
  GENERATED ALWAYS AS (memory_search_words(text, tenant, agent_id, project_id)) STORED;
CREATE INDEX memory_search_texts_words ON memory_search_texts USING gin (words);
