"""What all kinds of questions and engines stand on."""
