"""Sweeps: a study's questions, of whatever kind, answered by several processes into a folder that outlives any of them."""
