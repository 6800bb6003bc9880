"""Sheets of networks: their bandwidths, the chunks of a collective over them, and its sends link by link."""
