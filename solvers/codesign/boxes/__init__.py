"""Monotone branch and bound over boxes of hardware points."""
