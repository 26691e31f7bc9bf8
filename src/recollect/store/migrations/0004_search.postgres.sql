-- Words without positions, parts of names, and the scope; a column that the database itself keeps.
-- A text beyond 100,000 characters is searched by its beginning: a tsvector has an upper bound.
CREATE FUNCTION memory_search_words(content TEXT, tenant TEXT, agent_id TEXT, project_id TEXT) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT strip(to_tsvector('pg_catalog.english', regexp_replace(
      left(content, 100000) || CASE WHEN content ~ '[a-z0-9][A-Z]'
        THEN ' ' || regexp_replace(left(content, 100000), '([a-z0-9])([A-Z])', '\1 \2', 'g') ELSE '' END,
      '[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00bf\u2000-\u206f\u3000-\u303f]+', ' ', 'g')))
    || array_to_tsvector(ARRAY[
      'xq' || md5(tenant || chr(31) || agent_id),
      'xq' || md5(tenant || chr(31) || agent_id || chr(31) || project_id)])
$$;
ALTER TABLE memory_transcript_entries ADD COLUMN words tsvector
  GENERATED ALWAYS AS (memory_search_words(content, tenant, agent_id, project_id)) STORED;
CREATE INDEX memory_transcript_entries_words ON memory_transcript_entries USING gin (words);
ALTER TABLE memory_search_texts ADD COLUMN words tsvector
  GENERATED ALWAYS AS (memory_search_words(text, tenant, agent_id, project_id)) STORED;
CREATE INDEX memory_search_texts_words ON memory_search_texts USING gin (words);

CREATE FUNCTION memory_search_follow(owner_tenant TEXT, owner_agent TEXT, what TEXT, which TEXT) RETURNS void
LANGUAGE sql AS $$
  DELETE FROM memory_search_texts
  WHERE tenant = owner_tenant AND agent_id = owner_agent AND kind = what AND ref = which;
  INSERT INTO memory_search_texts (tenant, agent_id, kind, ref, project_id, text)
  SELECT tenant, agent_id, kind, ref, project_id, text FROM memory_search_sources
  WHERE tenant = owner_tenant AND agent_id = owner_agent AND kind = what AND ref = which
  ON CONFLICT (tenant, agent_id, kind, ref) DO UPDATE SET project_id = excluded.project_id, text = excluded.text;
$$;
CREATE FUNCTION memory_search_summary() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF TG_OP <> 'INSERT' THEN
    PERFORM memory_search_follow(OLD.tenant, OLD.agent_id, 'summary', OLD.session_key);
  END IF;
  IF TG_OP <> 'DELETE' THEN
    PERFORM memory_search_follow(NEW.tenant, NEW.agent_id, 'summary', NEW.session_key);
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION memory_search_memory() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF TG_OP <> 'INSERT' THEN
    PERFORM memory_search_follow(OLD.tenant, OLD.agent_id, 'memory', OLD.memory_id);
  END IF;
  IF TG_OP <> 'DELETE' THEN
    PERFORM memory_search_follow(NEW.tenant, NEW.agent_id, 'memory', NEW.memory_id);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER memory_search_summary AFTER INSERT OR UPDATE OR DELETE ON memory_stage1
FOR EACH ROW EXECUTE FUNCTION memory_search_summary();
CREATE TRIGGER memory_search_memory AFTER INSERT OR UPDATE OR DELETE ON memory_memories
FOR EACH ROW EXECUTE FUNCTION memory_search_memory();

INSERT INTO memory_search_texts (tenant, agent_id, kind, ref, project_id, text)
SELECT tenant, agent_id, kind, ref, project_id, text FROM memory_search_sources;
