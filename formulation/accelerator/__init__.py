"""Schedules of operators on the cores of a chip, and stages of a network over devices, with bounds in whole numbers."""
