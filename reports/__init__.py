"""Results for people: text for the terminal. Reads results only."""

__all__: list[str] = []
