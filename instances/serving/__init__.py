"""Serving of a language model: the question, and the table of workers that it offers."""
