"""Stage 5: finds memories, summaries and transcript entries by what they say, mean, and when they were said."""
