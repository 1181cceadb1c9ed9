"""Benchmarks of mercer beside its peers; `harness` runs them, one module holds each table."""
