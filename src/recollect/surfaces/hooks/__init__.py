"""What agents call at their events: a thin client, and what the daemon answers it."""
