"""Copies of workers of several sizes on a number of devices: a knapsack in whole numbers."""
