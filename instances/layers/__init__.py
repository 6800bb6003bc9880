"""One strategy for each layer of a network under budgets: the question, and the problem in whole numbers."""
