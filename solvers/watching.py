"""What an engine tells of its work while it works."""
