"""Choices for layers under budgets: ties merged, an order of small fronts, and the dynamic program that proves bounds."""
