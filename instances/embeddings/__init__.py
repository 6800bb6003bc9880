"""Questions about embedding tables over devices and memory tiers."""
