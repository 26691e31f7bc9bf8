-- Who wrote which part of a message, and what it tells by its structure. Derived, as the content is.

ALTER TABLE memory_transcript_entries ADD COLUMN authors TEXT NOT NULL DEFAULT '';  -- typed:12,pasted:30; empty: unknown
ALTER TABLE memory_transcript_entries ADD COLUMN events TEXT NOT NULL DEFAULT '';   -- JSON: [kind, text] each
