"""Joint-design questions: sections, reading, the design space and its boxes."""
