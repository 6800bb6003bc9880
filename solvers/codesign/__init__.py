"""Joint designs: engines, the judge, proofs and rivals."""
