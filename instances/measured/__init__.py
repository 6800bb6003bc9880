"""Measured runs and kernels: rows, machines, and the vocabulary of frameworks."""
