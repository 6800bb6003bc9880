"""Serving of transformers: kernels of a step, and workers that prefill, decode or do both."""
