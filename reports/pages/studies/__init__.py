"""Pages about studies and sweeps."""
