"""Random sampling: chips that keep the budgets and plans that fit some chip, each equally likely."""

from collections.abc import Iterator

import numpy as np

from crossopt.solvers.codesign.rivals.searchers.neighbourhood import Look, Question, draw_chips, draw_rows, look


def uniform(question: Question, random: np.random.Generator) -> Iterator[Look]:
    """Some plans on some chips, again and again. It never looks at the expert rule."""
    while True:
        yield look(question, draw_chips(question, random, question.width), draw_rows(question, random, question.width))
