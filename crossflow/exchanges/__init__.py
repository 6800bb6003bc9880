"""What parts of a plan exchange in ways of their own: around attention, with experts, and behind other work."""
