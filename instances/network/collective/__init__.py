"""One collective in chunks over the dimensions of a network: in which order does each chunk pass them?"""
