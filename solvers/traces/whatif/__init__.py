"""Changes of a trace: who chooses them, who judges, what proves."""
