"""Searchers: rivals that look for good designs and prove nothing, all on the same prices, one file each.

A searcher is a generator: it looks at some designs at a time and yields what it saw. `searchers.driver` runs it, holds it to its
time, keeps the best design of all and has it certified.
"""

__all__ = ["anneal", "descent", "driver", "genetic", "gradient", "greedy", "local", "moves", "shares", "space_of_designs", "uniform"]
