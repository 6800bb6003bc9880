"""What is told of hidden cases: which are right, the mistake that has a name, and of an error its kind and its line.

A program sees what it is asked, so that whatever it says or returns may carry that out, and a figure's ratio to the right one is the right
one. Who may hand in again would need nothing else.
"""

import builtins
import re
from dataclasses import replace
from pathlib import Path

from crossopt.solvers.grading.marks import PRACTICE, Verdict
from crossopt.solvers.grading.walls.child import NOT_FINITE, TOO_MUCH, no_function
from crossopt.solvers.grading.walls.running import Call, Returned

TOLD_LESS = "how far off an answer is, and what a program says, is told of the cases that one practises with (crossopt grade {} FOLDER)"
_NOT_RIGHT = "not right"
_PLACE = re.compile(r" \(line (\d{1,7}) of [^()\n]{1,120}\)\Z")
_KIND = re.compile(r"\w{1,60}")


def is_hidden(seed: str) -> bool:
    """Whether cases are drawn from another word than the one that students practise with."""
    return seed.partition("/")[0] != PRACTICE


def without_words(one: Returned, call: Call, program: Path) -> Returned:
    """The failure without what the program may have chosen of it, but for a kind of error that Python itself has, and a line of its own."""
    nothing_to_hide = (TOO_MUCH, NOT_FINITE, f"AttributeError: {no_function(call.function, program.name)}")
    if not one.said or one.failure in nothing_to_hide:
        return one
    kind, place = _KIND.match(one.failure), _PLACE.search(one.failure)
    known = getattr(builtins, kind[0], None) if kind else None
    name = known.__name__ if isinstance(known, type) and issubclass(known, BaseException) else "an error of its own kind"
    own = place and place[0].endswith(f" of {program.name})") and int(place[1]) <= len(program.read_bytes().splitlines())
    return replace(one, failure=f"{name}{place[0] if place and own else ''}")


def without_figures(found: Verdict, returned: Returned) -> Verdict:
    """The verdict with the mistakes that have a name, and no figure."""
    return replace(found, why=returned.failure or ("" if found.mistakes else _NOT_RIGHT))
