"""Measures gitmem beside its peers: `python -m tests.benchmarks [--quick]`. Nothing here is a test."""
