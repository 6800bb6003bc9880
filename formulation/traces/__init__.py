"""Questions about traces as models: what every choice of changes makes of a graph, and which kernels stand for a trace."""
