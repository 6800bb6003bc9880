"""Keeps the best answer of a command outside of the process that looks for it."""
