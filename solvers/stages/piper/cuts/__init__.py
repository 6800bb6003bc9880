"""The search for the quickest stages: where a network can be cut, what stages between cuts can be, and a dynamic program over them."""
