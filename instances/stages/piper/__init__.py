"""How a network is trained on many devices by data, tensor and pipeline parallelism together: graphs, the question, and their files."""
