"""A sheet drawn: for the terminal, as a page, as tables."""
