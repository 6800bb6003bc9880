"""Reports as pages: one file each, without anything from outside, for the screen in light and dark and for paper."""
