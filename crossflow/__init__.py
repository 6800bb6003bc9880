"""The analytical model: what a design costs in time, memory, energy, area and money. Pure functions on SI floats and numpy arrays."""
