"""What commands do about graphs of operators beside what they do about all questions."""
