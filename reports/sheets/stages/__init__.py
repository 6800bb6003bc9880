"""Plans in stages, of whichever kind: what every stage takes and keeps, and how far other plans are."""
