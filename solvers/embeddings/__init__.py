"""Engines, judge and proofs of embedding tables over devices."""
