"""Choices of strategies by integer models, and proofs that need no solver's word."""
