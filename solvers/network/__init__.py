"""Bandwidths of a network's dimensions: who chooses them, who judges, what proves."""
