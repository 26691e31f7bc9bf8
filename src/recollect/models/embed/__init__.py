"""Text to vectors: a static model that comes with the package, a small transformer that is installed once, or an
endpoint. Vectors of different models are never compared."""
