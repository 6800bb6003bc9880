"""Bounds on the busiest device."""
