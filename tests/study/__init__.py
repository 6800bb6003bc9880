"""Studies: how they are read and run, their figures, their pages, and what the ones that come along claim."""
