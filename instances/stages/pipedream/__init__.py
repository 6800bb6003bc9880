"""Profiles and chains of layers, and the questions how they are pipelined."""
