"""Who answers a command about a question of some kind: a module of that kind, or what all kinds share.

Functions of such a module have the names of the commands that they answer, take the options and say how it ended; `check` takes the path
of a saved result.
"""

import sys
from argparse import Namespace
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossopt.instances.errors import Fault, InstanceError, RefusedError
from crossopt.instances.files.saved import kind_of
from crossopt.instances.kinds import KINDS
from crossopt.reports.commands.console import Ending

VIPR = ".vipr"
"""How the names of certificates of integer models end."""
if TYPE_CHECKING:
    from crossopt.solvers.checking import Report


def command_of(kind: str, name: str) -> Callable[[Namespace], Ending]:
    """What is done for a command about a question of this kind; a RefusedError in words where it is nothing."""
    if name == "validate" and KINDS[kind].question:
        return lambda options: _validate(options, kind)
    own: Callable[[Namespace], Ending] | None = _own(kind, name)
    if own is not None:
        return own
    if KINDS[kind].family:
        from crossopt.reports.commands import asking  # noqa: PLC0415 - it loads what answers

        of_all: Callable[[Namespace, str], Ending] | None = getattr(asking, name, None)
        if of_all is not None:
            return lambda options: of_all(options, kind)
    other = "compare" if kind == "study" else "solve"
    raise RefusedError(f"`{name}` does not answer questions about {KINDS[kind].about} (`{other}` does)")


def _validate(options: Namespace, kind: str) -> Ending:
    """Say how large the question is, without loading anything that answers."""
    from crossopt.reports.commands.console import question_of  # noqa: PLC0415

    module, question = import_module(KINDS[kind].question), question_of(options, {})
    about = [f"  {line}\n" for line in getattr(module, "about_of", _nothing)(question)]
    sys.stdout.write(f"{options.file}: valid: {module.size_of(question)}\n{''.join(about)}")
    return Ending("FEASIBLE", proved=True)


def _nothing(question: object) -> tuple[str, ...]:
    """What a question is about, beside its size, of a kind that says no more."""
    del question
    return ()


def check(path: Path, cross_check: bool = False) -> "Report":
    """Everything that a saved result says, said again from its question alone, whatever it is about."""
    from crossopt.reports.commands import asking, fronts  # noqa: PLC0415

    if path.suffix == VIPR:
        return _check_vipr(path)
    kind = kind_of(path)
    if kind == fronts.KIND:
        return fronts.check_front(path, cross_check)
    if kind == "constants":
        from crossopt.reports.commands.constants import check as check_constants  # noqa: PLC0415

        return check_constants(path)
    own: Callable[[Path], Report] | None = _own(kind, "check") if kind in KINDS else None
    return own(path) if own else asking.check(path, kind if kind in KINDS else "codesign", cross_check)


def _check_vipr(path: Path) -> "Report":
    """What a certificate of an integer model proves, independent of who wrote it."""
    from crossopt.instances.files.careful import bytes_of  # noqa: PLC0415 - most checks are of results
    from crossopt.solvers import vipr  # noqa: PLC0415
    from crossopt.solvers.checking import Report  # noqa: PLC0415

    data = bytes_of(path, vipr.LARGEST, "name a certificate, as `export --as vipr` writes it")
    try:
        if data is None:
            raise vipr.MalformedError(f"the certificate is larger than {vipr.LARGEST:,} bytes, which is the limit")
        checked = vipr.check(data.decode("utf-8", "replace"))
    except vipr.MalformedError as error:
        raise InstanceError(str(path), [Fault(error.line, 1, "", str(error))], "nothing checked") from error
    except vipr.RefutedError as error:
        return Report((), (str(error),))
    size = f"{checked.variables:,} variables, {checked.constraints:,} constraints"
    steps = f"{checked.derived:,} derivations and {checked.solutions:,} solutions were checked in exact fractions"
    named = (comment for comment in checked.comments if comment.startswith("question: "))
    comments = (f"a comment, which is not verified: {''.join(filter(str.isprintable, comment))[:150]}" for comment in named)
    return Report((f"a model of {size}: {steps}", vipr.sentence(checked), *list(comments)[:1]), ())


def _own(kind: str, name: str) -> Any:  # noqa: ANN401 - a command of any form
    """What a kind does itself, where it does."""
    return getattr(import_module(KINDS[kind].commands), name, None) if KINDS[kind].commands else None
