"""How many devices a question has, and the network that joins them."""
