"""Measured runs: rows, cells, machines and the words that frameworks use."""
