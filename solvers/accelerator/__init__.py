"""Chips of a template with schedules and stages: engines, judge, baselines and proof."""
