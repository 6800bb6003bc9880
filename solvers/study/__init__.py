"""Studies: several questions asked of several engines, with several seeds, and what comes of it in figures that can be quoted."""
