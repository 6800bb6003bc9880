"""Devices, technologies and workloads by name, and the constants that come with them."""
