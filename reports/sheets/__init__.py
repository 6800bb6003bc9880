"""What each kind of question shows of its answers: a function `sheet(question, result)` each, which every renderer draws."""
