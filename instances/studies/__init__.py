"""Studies: what is asked of which engines, and what a study says of its own answers: columns that follow, expectations, measured points."""
