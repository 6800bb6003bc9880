"""ASTRA-sim's analytical back end, reproduced to the nanosecond: chunked collectives on a multi-dimensional network."""
