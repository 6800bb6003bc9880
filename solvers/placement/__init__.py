"""Who answers where operators run: the judge, searchers, and engines with a proof."""
