"""Networks of dimensions: which bandwidth each has, within a budget, for the workloads that run on them."""
