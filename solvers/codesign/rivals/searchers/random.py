"""Random sampling: chips that keep the budgets and plans that fit some chip, each equally likely."""

from collections.abc import Iterator

import numpy as np

from crossopt.solvers.codesign.rivals.searchers.neighbourhood import Look, Question, drawn_chips, drawn_rows, look


def uniform(question: Question, random: np.random.Generator) -> Iterator[Look]:
    """Some plans on some chips, again and again. It never looks at the expert rule."""
    while True:
        yield look(question, drawn_chips(question, random, question.width), drawn_rows(question, random, question.width))
