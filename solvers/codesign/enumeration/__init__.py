"""All designs priced: the engine that needs no theory, which all others are held against."""
