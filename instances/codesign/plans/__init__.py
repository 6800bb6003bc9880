"""Plans of a joint question: what may be chosen of them, those bounded together, and combinations that are no plans."""
