"""Which operator runs where, as integer models."""
