"""Questions about traces: who answers, who judges, what proves."""
