"""Which constants decide an answer: the command, its text, its page, and its file read back."""
