"""Chains of layers: stages, replicas, width and recomputation that make a batch quickest."""
