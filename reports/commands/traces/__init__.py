"""Commands about traces: what `import` reads and prints, and how files of them are written and checked."""
