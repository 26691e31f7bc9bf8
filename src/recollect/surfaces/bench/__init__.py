"""Benchmarks: what `recollect bench` measures."""
