"""What makes a core smaller without losing its best choice."""
