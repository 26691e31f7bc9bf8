ALTER TABLE memory_transcript_entries DROP COLUMN words;
ALTER TABLE memory_search_texts DROP COLUMN words;
DROP FUNCTION memory_search_words(TEXT, TEXT, TEXT, TEXT);

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
-- Every word counts: a list of stop words would hide "The Who" and "don't".
CREATE TEXT SEARCH DICTIONARY memory_stems (TEMPLATE = pg_catalog.snowball, LANGUAGE = english);
CREATE TEXT SEARCH CONFIGURATION memory_words (COPY = pg_catalog.english);
ALTER TEXT SEARCH CONFIGURATION memory_words ALTER MAPPING REPLACE english_stem WITH memory_stems;

-- Signs stand between words: to the locale C, all that is not ASCII is a letter. Bound when it is made: pg_dump and
-- pg_upgrade read it without a search path.
CREATE FUNCTION memory_search_words(content TEXT, tenant TEXT, agent_id TEXT, project_id TEXT)
RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT strip(to_tsvector('memory_words', regexp_replace(
      plain || ' ' || memory_search_pairs(plain) || CASE WHEN plain ~ '[a-z0-9][A-Z]|[A-Z][A-Z][a-z]'
        THEN ' ' || regexp_replace(regexp_replace(plain, '([a-z0-9])([A-Z])', '\1 \2', 'g'),
          '([A-Z])([A-Z][a-z])', '\1 \2', 'g') ELSE '' END,
      '[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00bf\u00d7\u00f7\u0589\u05be\u05c0\u05c3\u05f3\u05f4\u060c\u061b\u061f\u066a-\u066d\u06d4\u0964\u0965\u2000-\u206f\u20a0-\u20cf\u2190-\u245f\u2500-\u2bff\u2e00-\u2e7f\u3000-\u303f\ufe10-\ufe6f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\U0001f000-\U0001faff]+', ' ', 'g')))
    || array_to_tsvector(ARRAY[
      'xq' || md5(tenant || chr(31) || agent_id),
      'xq' || md5(tenant || chr(31) || agent_id || chr(31) || project_id)])
  FROM memory_search_plain(left(content, 100000)) AS plain;
END;

ALTER TABLE memory_transcript_entries ADD COLUMN words tsvector
  GENERATED ALWAYS AS (memory_search_words(content, tenant, agent_id, project_id)) STORED;
CREATE INDEX memory_transcript_entries_words ON memory_transcript_entries USING gin (words);
ALTER TABLE memory_search_texts ADD COLUMN words tsvector
  GENERATED ALWAYS AS (memory_search_words(text, tenant, agent_id, project_id)) STORED;
CREATE INDEX memory_search_texts_words ON memory_search_texts USING gin (words);
