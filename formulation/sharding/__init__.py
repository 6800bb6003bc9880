"""One strategy for each operator: what is left of a problem after reductions, each with its way back, and its integer model."""
