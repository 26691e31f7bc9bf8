"""Stage 7: chat turns. `chat` is what agents are built on; the log that turns, notes and reactions are written to lies
below it."""
