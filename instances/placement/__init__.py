"""Where the operators of a network run: graphs, the question asked of them, and the files they come in."""
