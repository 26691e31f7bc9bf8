"""Benchmarks beside the package: `python -m bench NAME`. They need real material, which is not in the repository."""
