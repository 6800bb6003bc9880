"""Counts of kinds: instances of threads and requests on a server, and devices of several kinds for classes of requests."""
