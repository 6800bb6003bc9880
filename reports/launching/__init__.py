"""Plans as settings of training stacks that launch, and read back from what was printed."""
