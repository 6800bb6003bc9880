"""Traces: what ran when, read from files of several tools, and kept as graphs that questions are asked of."""
