-- Files of other agents are not remembered any more, not even by their names.

DELETE FROM memory_artifacts WHERE source_kind = 'foreign';
