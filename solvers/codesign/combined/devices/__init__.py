"""Questions that leave the number of devices open: every engine answers for each number, and the best of the answers is the answer."""
