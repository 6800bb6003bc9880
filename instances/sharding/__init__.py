"""One strategy for each operator of a network: the problem, and its files."""
