"""Questions: YAML files and their readers, the registries of hardware, technologies and workloads, and the design space of a question."""
