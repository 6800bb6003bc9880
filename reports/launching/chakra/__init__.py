"""Plans as Chakra traces, one for each device, that ASTRA-sim runs."""
