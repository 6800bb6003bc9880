"""What a chip is in words, and how fast its memories are by its own clock."""
