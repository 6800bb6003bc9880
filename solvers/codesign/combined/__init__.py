"""Several questions in one: workloads that share a chip, numbers of devices, fronts of two figures."""
