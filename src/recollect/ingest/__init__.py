"""From transcripts on disk to entries and conversations in the store, each exactly once."""
