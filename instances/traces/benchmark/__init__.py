"""Benchmarks: which few kernels, each repeated how often, stand for a trace?"""
