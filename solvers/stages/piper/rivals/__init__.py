"""What is done beside the whole search: without one part of it, greedily, and with equal stages."""
