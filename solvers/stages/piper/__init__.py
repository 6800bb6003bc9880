"""Who answers how stages, replicas and splits train a network quickest: the judge, the search with its proof, and rules beside it."""
