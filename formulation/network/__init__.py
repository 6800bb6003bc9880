"""Bandwidths of dimensions as a convex program, and bounds of it that anybody can count."""
