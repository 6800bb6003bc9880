"""What the keys of a section are, for editors and readers: JSON schemas and tables."""
