"""Studies in lines for the terminal."""
