"""Serving plans as a problem type."""
