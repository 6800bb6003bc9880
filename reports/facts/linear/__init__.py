"""A design beside the integer model that proved its bound: the terms of both, and what a saved relaxation may say."""
