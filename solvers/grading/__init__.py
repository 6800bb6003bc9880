"""Assignments of a course: tasks, judges of answers, and sandboxed execution of submissions."""
