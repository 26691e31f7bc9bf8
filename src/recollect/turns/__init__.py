"""Stage 7: chat turns. So far the log that they, notes and reactions are written to."""
