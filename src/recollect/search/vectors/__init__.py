"""Search by meaning.

Vectors in the database are the truth. On SQLite (and on PostgreSQL without pgvector) a memory-mapped file of codes
proposes candidates; the database decides which of them exist and may be seen, and gives the exact similarity. The file
is a cache: without it everything is still found, only more slowly.
"""
