"""A bound by dynamic programming along the blocks."""
