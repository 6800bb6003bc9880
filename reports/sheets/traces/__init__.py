"""Sheets of questions about traces."""
