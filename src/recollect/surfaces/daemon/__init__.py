"""One process per home that follows the agents and answers their hooks."""
