"""Chunks of a collective: who orders them, who judges, what proves."""
