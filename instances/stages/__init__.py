"""Questions about chains, profiles and networks that are cut into stages."""
