"""Traces of PyTorch's profiler (Kineto) in Chrome's JSON: what threads called, what devices did, and which of it waited for which."""
