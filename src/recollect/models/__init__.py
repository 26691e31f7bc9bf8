"""Language models and embedders. Nothing here is imported before a model is really used: their clients are slow."""
