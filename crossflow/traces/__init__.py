"""Execution traces as graphs of operations, and their replay in traced order."""
