"""Choices for layers under budgets: engines, judge, baselines and proofs."""
