"""What a person sees, and the way in: command line, texts, pages, tables and pictures."""
