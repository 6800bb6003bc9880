"""Submissions of a whole class: who handed in what, graded side by side, and which programs are alike."""
