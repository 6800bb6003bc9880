"""What may be chosen, as a small integer model that every solver understands. Imports no solver."""
