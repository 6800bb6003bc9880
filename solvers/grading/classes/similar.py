"""Which programs of a class are alike: fingerprints of their tokens, whatever their names, figures, comments and layout.

A fingerprint is the hash of K tokens in a row, and of every W neighbours the least is kept (winnowing: Schleimer, Wilkerson and Aiken,
SIGMOD 2003). Those of the handout, and those that many submissions have, say nothing. Two programs are alike by the share of the smaller
one's fingerprints that the other one has; the judges of this package, which anybody can read, count as one more student. It is a reason to
look at both, and no proof: short functions have few right forms.
"""

import hashlib
import io
import keyword
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

from crossopt import crossflow
from crossopt.solvers import grading
from crossopt.solvers.grading.classes.handed_in import HandedIn
from crossopt.solvers.grading.handouts import BESIDE, HANDOUTS
from crossopt.solvers.grading.notebooks import program_in
from crossopt.solvers.grading.walls.submission import SubmissionError, opened

K, W = 12, 6
"""Tokens of a fingerprint, and neighbours of which the least is kept."""
ALIKE = 0.6
"""The share from which a pair is told: an estimate, to be set by looking at what is told."""
JUDGES = "(the judges of crossopt)"
_COMMON, _MANY, _FEW = 0.25, 12, 8
"""The share of submissions, and more than how many, make a fingerprint common; and fingerprints below which a program says too little."""
_BYTES = 1 << 20
_LEFT_OUT = {tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER, tokenize.NEWLINE}

Words = tuple[str, ...]
"""Tokens of a program: names, figures and texts by their kind alone."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two students whose programs are alike, the share of the smaller one that is in the other, and how many fingerprints that are."""

    assignment: str
    one: str
    other: str
    share: float
    prints: int


def find_similar(handed: Sequence[HandedIn], alike: float = ALIKE) -> tuple[Pair, ...]:
    """Pairs of each assignment, the most alike first."""
    found: list[Pair] = []
    for name in sorted({one.assignment.name for one in handed}):
        given = [words_of(path.read_text(encoding="utf-8")) for path in [*sorted((HANDOUTS / name).glob("*.py")), HANDOUTS / BESIDE]]
        programs = {one.student: _together(one.path, given) for one in handed if one.assignment.name == name}
        found += _pairs(name, programs, frozenset(one for words in given for one in prints_of(words)), alike)
    return tuple(sorted(found, key=lambda pair: (-pair.share, pair.assignment, pair.one, pair.other)))


def _pairs(name: str, programs: Mapping[str, Words], given: frozenset[int], alike: float) -> Iterator[Pair]:
    """Those of one assignment. What is the same from the first token to the last is told however many have it."""
    own = {student: prints for student, words in programs.items() if len(prints := prints_of(words) - given) >= _FEW}
    counts = Counter(one for prints in own.values() for one in prints)
    common = {one for one, count in counts.items() if count > max(_MANY, _COMMON * len(programs))}
    for one, other in combinations(own, 2):
        left_out = frozenset[int]() if programs[one] == programs[other] else common
        first, second = own[one] - left_out, own[other] - left_out
        both, least = len(first & second), min(len(first), len(second))
        if least >= _FEW and both >= alike * least:
            yield Pair(name, one, other, both / least, both)
    for student, prints in own.items():
        taken = len(prints & _of_judges())
        if taken >= alike * len(prints):
            yield Pair(name, student, JUDGES, taken / len(prints), taken)


@cache
def _of_judges() -> frozenset[int]:
    """Fingerprints of what judges answers, and of the formulas that it rests on."""
    folders = (Path(module.__file__ or "").parent for module in (grading, crossflow))
    files = sorted(path for folder in folders for path in folder.rglob("*.py"))
    return frozenset(one for path in files for one in prints_of(words_of(path.read_text(encoding="utf-8"))))


def prints_of(words: Words) -> frozenset[int]:
    """The fingerprints of a program."""
    grams = [" ".join(words[place : place + K]) for place in range(len(words) - K + 1)]
    hashes = [int.from_bytes(hashlib.blake2b(gram.encode(), digest_size=8).digest(), "big") for gram in grams]
    return frozenset(min(hashes[place : place + W]) for place in range(max(1, len(hashes) - W + 1)) if hashes)


def words_of(program: str) -> Words:
    """Its tokens, up to where it is no Python."""
    words: list[str] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(program).readline):
            if token.type in _LEFT_OUT:
                continue
            if token.type == tokenize.NAME:
                words.append(token.string if keyword.iskeyword(token.string) else "name")
            else:
                words.append(token.string if token.type == tokenize.OP else tokenize.tok_name[token.type])
    except (tokenize.TokenError, SyntaxError):
        pass
    return tuple(words)


def _together(path: Path, given: Sequence[Words]) -> Words:
    """The tokens of all files of a submission but those that were handed out, whatever the files are called."""
    files = sorted({words_of(text) for text in programs_of(path)} - set(given))
    return tuple(word for words in files for word in words)


def programs_of(path: Path) -> tuple[str, ...]:
    """The texts of a submission's programs and notebooks; none where it cannot be read."""
    try:
        with opened(path) as folder:
            return tuple(text for file in sorted(folder.rglob("*")) if file.is_file() and (text := _program(file)))
    except (SubmissionError, OSError):
        return ()


def _program(file: Path) -> str:
    """Nothing where it is neither."""
    if file.suffix not in {".py", ".ipynb"}:
        return ""
    text = file.read_bytes()[:_BYTES].decode("utf-8", "replace")
    try:
        return text if file.suffix == ".py" else program_in(text)
    except (ValueError, TypeError, RecursionError):
        return ""
