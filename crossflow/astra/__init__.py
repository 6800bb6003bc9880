"""The analytical back end of ASTRA-sim, to the nanosecond: collectives in chunks over the dimensions of a network."""
