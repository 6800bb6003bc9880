"""Why an answer is what it is."""
