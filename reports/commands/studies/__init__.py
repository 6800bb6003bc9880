"""Commands about studies: questions side by side, and sweeps that keep their answers in a folder."""
