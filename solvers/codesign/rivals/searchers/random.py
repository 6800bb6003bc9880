"""Random sampling from the best recipe's design on: chips that keep the budgets and plans that fit some chip, each equally likely."""

from collections.abc import Iterator

import numpy as np

from crossopt.solvers.codesign.rivals.searchers.neighbourhood import Look, Question, draw_chips, draw_rows, look, started


def uniform(question: Question, random: np.random.Generator) -> Iterator[Look]:
    """The design that all searchers begin with, then some plans on some chips, again and again, whatever was found before."""
    yield from started(question, random)
    while True:
        yield look(question, draw_chips(question, random, question.width), draw_rows(question, random, question.width))
