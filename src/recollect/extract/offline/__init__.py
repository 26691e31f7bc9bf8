"""The model that needs no model: finds what matters in a conversation by its words alone. Same input, same bytes."""
