"""The joint design as integer models, in several forms."""
