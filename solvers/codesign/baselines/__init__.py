"""Rules of thumb and searchers, which prove nothing."""
