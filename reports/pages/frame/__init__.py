"""What every page stands in: how it looks, what its script does, and its first screen."""
