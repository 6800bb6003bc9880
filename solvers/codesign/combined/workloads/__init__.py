"""Questions with several workloads on one chip: engines, results and their check, beside those for one workload."""
