"""Matrix products and LSTMs on distributed devices, and the operators of sharded networks."""
