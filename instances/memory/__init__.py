"""Questions about rematerialisation under a memory budget."""
