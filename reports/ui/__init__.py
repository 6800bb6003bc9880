"""The local page of `crossopt ui`: a server on this machine, and what a browser shows of it."""
