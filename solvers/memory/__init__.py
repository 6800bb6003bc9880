"""Rematerialisation under a memory budget: engines, judge and proofs."""
