"""How programs that nobody trusts are run."""
