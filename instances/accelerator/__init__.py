"""Questions about accelerators of a template, with operators on their cores and stages over many of them."""
