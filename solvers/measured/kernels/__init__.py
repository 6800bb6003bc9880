"""Operators against measured kernels: errors, and constants fitted to them."""
