"""Assignments of a course: what is asked, how answers are judged, and how programs that nobody trusts are run."""
