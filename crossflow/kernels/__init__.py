"""Products and LSTMs: matrix products spread over devices, and the networks made of them."""
