"""Stage 6: what is known, put into the live context of an agent: bounded, current, and never into a summary."""
