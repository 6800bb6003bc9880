"""Plans that training stacks support: one table per stack, with a source for every row, and conclusions from them."""
