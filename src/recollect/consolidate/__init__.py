"""Phase 2: keeps the memory workspace. One job per owner; everything but `run` and `workspace` is pure or a model."""
