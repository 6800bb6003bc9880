"""Joint designs: engines, the judge, proofs and baselines."""
