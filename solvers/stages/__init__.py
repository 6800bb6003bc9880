"""Chains, profiles and networks cut into stages."""
