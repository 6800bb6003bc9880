"""How soon one sample is through: accelerators run pieces of the graph, CPUs the rest."""
