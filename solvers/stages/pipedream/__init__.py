"""Pipelines: which layers form a stage, and how often each stage is replicated."""
