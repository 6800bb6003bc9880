"""Registries of devices, technologies and workloads, and their calibrated constants."""
