"""Questions and results that were hit by chance: bytes, keys, values, types, nesting, numbers and letters of all kinds. Each is answered or
refused, and nothing fails: `CROSSOPT_FUZZ=3000 pytest -m slow tests/test_fuzzed_files.py -s` tries so many, from a seed that is printed."""

import copy
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random, randrange
from typing import Any

import pytest

from crossopt.instances.catalogue.registry import shipped
from crossopt.instances.kinds import KINDS
from crossopt.reports.cli import main
from tests.samples import SAMPLES

MANY = int(os.environ.get("CROSSOPT_FUZZ", "300"))
GUARD = 60
"""Seconds that no call may take."""
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, 10**30, -(10**400), 0.5, -0.0, 1e-320, 1e308, -1e308, float("inf"), float("nan")),
    *(
        "",
        " ",
        "-",
        "0",
        "1e999",
        "nan",
        ".",
        "..",
        "../x",
        "/dev/zero",
        "~",
        "null",
        "!!python/object:os.system",
        "*a",
        "&a",
        "<<",
        "{{",
        "]",
    ),
    *("é", "日本", "\u202e", "\ufeff", "\x00", "\x1b[2J", "😀" * 50, "\ud800", "x" * 5000, "9" * 5000, "1 GB", "-3 s", "1e400 W", "a\nb"),
    *([], {}, [[]], {"": {}}, [None] * 300, {"form": "word"}, {"kind": "codesign"}),
)


KNOWN = {kind: sample for kind, sample in SAMPLES.items() if kind in KINDS}


class TookTooLongError(Exception):
    """A call that did not end within the guard."""


def paths_in(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401
    yield path
    for key, inner in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from paths_in(inner, (*path, key))


def nested(depth: int, random: Random) -> Any:  # noqa: ANN401
    found: Any = random.choice(ODD)
    for _ in range(depth):
        found = [found] if random.random() < 0.5 else {"a": found}
    return found


def hit(data: Any, random: Random) -> Any:  # noqa: ANN401
    """Plain data with one thing changed."""
    data = copy.deepcopy(data)
    path = random.choice(list(paths_in(data))[1:] or [()])
    if not path:
        return random.choice(ODD)
    place = data
    for key in path[:-1]:
        place = place[key]
    key = path[-1]
    match random.randrange(7):
        case 0 if isinstance(place, dict):
            place[str(random.choice(ODD))] = place.pop(key)
        case 1:
            del place[key]
        case 2 if isinstance(place, list):
            place.extend(place[:50] * random.choice([1, 7]))
        case 3:
            place[key] = nested(random.choice([1, 5, 40, 150]), random)
        case 4 if isinstance(place[key], int | float) and not isinstance(place[key], bool):
            place[key] *= random.choice([0, -1, 0.5, 2, 1 + 1e-15, 1e9, 1e300, 10**12])
        case 5:
            other = data
            for step in random.choice(list(paths_in(data))):
                other = other[step]
            place[key] = copy.deepcopy(other)
        case _:
            place[key] = random.choice(ODD)
    return data


def spoiled(text: bytes, random: Random) -> bytes:
    """A text with some bytes changed, lost, doubled or put elsewhere."""
    for _ in range(random.choice([1, 1, 1, 3, 20])):
        at, length = random.randrange(len(text) + 1), random.choice([1, 1, 2, 10, 100])
        piece = random.choice(
            [b"", bytes([random.randrange(256)]), text[at : at + length] * 2, str(random.choice(ODD)).encode("utf-8", "replace")]
        )
        start = random.randrange(len(text) + 1)
        text = text[:start] + piece + text[start + random.choice([0, length]) :]
    return text


def of_json(text: str, random: Random) -> bytes:
    """A text of JSON with some values changed."""
    data = json.loads(text)
    for _ in range(random.choice([1, 1, 2, 5])):
        data = hit(data, random)
    try:
        return json.dumps(data).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return text.encode()


def run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """How a command ends, and what it says."""

    def late(*_: object) -> None:
        raise TookTooLongError

    signal.signal(signal.SIGALRM, late)
    signal.alarm(GUARD)
    try:
        code = main(arguments)
    except SystemExit as left:
        code = int(str(left.code))
    finally:
        signal.alarm(0)
    written = capsys.readouterr()
    return code, written.out + written.err


def tried(path: Path, commands: list[list[str]], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What went wrong with a file."""
    wrong = []
    for command in commands:
        code, told = run([command[0], str(path), *command[1:]], capsys)
        if code not in {0, 2, 3, 10, 11, 20, 30} or "Traceback" in told or "TookTooLong" in told:
            wrong.append(f"{' '.join(command)} ends with {code}: {told[-300:]}")
        if any(ord(sign) < 32 and sign not in "\t\n\r" for sign in told):
            wrong.append(f"{' '.join(command)} writes {told[:300]!r}")
    return wrong


def all_tried(corpus: dict[str, str], commands: list[list[str]], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seed = int(os.environ.get("CROSSOPT_SEED", randrange(2**31)))
    with capsys.disabled():
        print(f"\nCROSSOPT_SEED={seed} CROSSOPT_FUZZ={MANY}")
    random, wrong, names = Random(seed), list[str](), sorted(corpus)
    for number in range(MANY):
        name = random.choice(names)
        of_text: Callable[[str, Random], bytes] = lambda text, random: spoiled(text.encode(), random)  # noqa: E731
        change = of_json if name.endswith(".json") and random.random() < 0.8 else of_text
        path = folder / f"{number}-{Path(name).name}"
        path.write_bytes(change(corpus[name], random))
        faults = tried(path, commands, capsys)
        wrong += [f"{path}: {fault}" for fault in faults]
        if not faults:
            path.unlink()
    assert wrong == [], "\n".join(wrong[:20])


@pytest.mark.slow
def test_questions_that_were_hit_by_chance_are_read_or_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = {path.name: path.read_text(encoding="utf-8") for path in shipped().values()}
    corpus |= {f"{kind}{place}{sample.suffix}": text for kind, sample in KNOWN.items() for place, text in enumerate(sample.texts)}
    all_tried(corpus, [["validate"]], tmp_path, capsys)


@pytest.mark.slow
def test_results_that_were_hit_by_chance_are_checked_or_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus, given = dict[str, str](), tmp_path / "given"
    given.mkdir()
    for kind, sample in KNOWN.items():
        question, result = given / f"question-{kind}{sample.suffix}", given / f"{kind}.json"
        question.write_text(sample.texts[0], encoding="utf-8")
        assert main(["solve", str(question), "--out", str(result)]) == 0
        corpus[result.name] = result.read_text(encoding="utf-8")
    for name, more in (("front", ["--pareto", "step_time,power"]), ("boxes", ["--engine", "boxes"]), ("milp", ["--engine", "milp"])):
        assert main(["solve", "tiny", *more, "--out", str(given / f"{name}.json")]) == 0
        corpus[f"{name}.json"] = (given / f"{name}.json").read_text(encoding="utf-8")
    all_tried(corpus, [["check"], ["report", "--out", str(tmp_path / "page.html")]], given, capsys)
