"""Phase 1: one leased job per conversation turns its entries into a summary and typed memories."""
