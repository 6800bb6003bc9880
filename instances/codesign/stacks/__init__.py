"""Which plans a training stack launches: one table for each stack, with the source of every row, and what follows from them."""
