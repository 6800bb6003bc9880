"""The model against measured runs: errors, fitted constants and how sure they are."""
