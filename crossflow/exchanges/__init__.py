"""Communication of parallel plans: context, experts, replicas, stages, and its overlap with computation."""
