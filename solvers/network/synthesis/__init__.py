"""Who sends chunks over single links, who judges it, and what proves it."""
