"""Placements found without a proof."""
