"""One strategy for each operator: reductions, integer model, message passing, search, and who judges them."""
