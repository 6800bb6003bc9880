"""Several questions in one: workloads that share a chip, numbers of devices."""
