"""Many cases in one test: whichever fails is named in the report, and each has a folder, patches and output of its own."""

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

Test = Callable[..., None]


def every(names: str | tuple[str, ...], cases: Iterable[Any] | Callable[[], Iterable[Any]]) -> Callable[[Test], Test]:
    """The test with each of some values, as `pytest.mark.parametrize` has it, but all of them in one test.

    A function that gives the cases is asked when the test runs, and not while tests are collected.
    """
    several = (names,) if isinstance(names, str) else names

    def of(test: Test) -> Test:
        @wraps(test)
        def looped(**given: Any) -> None:  # noqa: ANN401
            for number, one in enumerate((case,) if isinstance(names, str) else tuple(case) for case in given_by(cases)):
                with pytest.MonkeyPatch.context() as patches:
                    try:
                        test(**_own(given, number, patches), **dict(zip(several, one, strict=True)))
                    except Exception as error:
                        error.add_note(f"in case {number}: {', '.join(map(repr, one))[:300]}")
                        raise

        parameters = signature(test).parameters
        del looped.__wrapped__  # or the arguments would be looked for there
        looped.__signature__ = signature(test).replace(parameters=[parameters[name] for name in parameters if name not in several])  # type: ignore[attr-defined]
        return looped

    return of


def given_by(cases: Iterable[Any] | Callable[[], Iterable[Any]]) -> Iterable[Any]:
    return cases() if callable(cases) else cases


def _own(given: dict[str, Any], number: int, patches: pytest.MonkeyPatch) -> dict[str, Any]:
    """The fixtures with what a case has for itself."""
    own = dict(given)
    if "tmp_path" in given:
        folder: Path = given["tmp_path"] / str(number)
        folder.mkdir()
        own["tmp_path"] = folder
    if "monkeypatch" in given:
        own["monkeypatch"] = patches
    if "capsys" in given:
        given["capsys"].readouterr()
    return own
