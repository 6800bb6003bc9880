"""Counts of kinds: engines, judges, baselines and proofs."""
