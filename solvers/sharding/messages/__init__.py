"""Bounds by messages between operators, and how they climb."""
