"""Benchmarks that stand for traces: who chooses kernels, who judges, what proves."""
