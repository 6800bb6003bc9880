"""Networks of other tools as graphs of operators, and these graphs as files."""
