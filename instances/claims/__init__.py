"""What a study says of its own answers: columns that follow from them, expectations, and measured points; and the formulas that say it."""
