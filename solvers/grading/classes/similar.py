"""Which programs of a class are alike: fingerprints of their tokens, whatever their names, figures, comments and layout.

A fingerprint is the hash of K tokens in a row, and of every W neighbours the least is kept (winnowing: Schleimer, Wilkerson and Aiken,
SIGMOD 2003). Those of the handout, and those that many submissions have, say nothing. Two programs are alike by the share of the smaller
one's fingerprints that the other one has, or by a long stretch of them, so that nothing is hidden by what is put around it; the judges of
this package, which anybody can read, count as one more student. It is a reason to look at both, and no proof: short functions have few
right forms. What is packed, read from a file, or made while a program runs earns nothing (walls/handed_code.py); who may get past that is
told as well.
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
ALL_ALIKE, STRETCH = 0.9, 60
"""The share from which what many have is told as well, and a stretch of so many fingerprints in a row: reference solutions, which are the
nearest to the judges of all programs known here, have at most 42 of 60 in common with them."""
JUDGES = "(the judges of crossopt)"
UNREAD = "(cannot be compared)"
_COMMON, _MANY, _FEW = 0.25, 12, 8
"""The share of submissions, and more than how many, make a fingerprint common; and fingerprints below which a program says too little."""
_BYTES = 1 << 20
_MAKES = frozenset({"ctypes", "unsafe_load", "UnsafeLoader", "runstring", "get_objects", "get_referrers"}) | {
    "_getframe",
    "tb_frame",
    "f_back",
    "f_globals",
    "cell_contents",
}
"""Names by which a program may reach what the walls do not hold: the memory of the interpreter, its frames, and loaders that run texts."""
_LEFT_OUT = {tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER, tokenize.NEWLINE}

Words = tuple[str, ...]
"""Tokens of a program: names, figures and texts by their kind alone."""
Trail = tuple[int, ...]
"""Fingerprints in the order of the program."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two students whose programs are alike, the share of the smaller one that is in the other, and how many fingerprints that are."""

    assignment: str
    one: str
    other: str
    share: float
    prints: int


def find_similar(handed: Sequence[HandedIn], alike: float = ALIKE) -> tuple[Pair, ...]:
    """Pairs of each assignment, the most alike first; ahead of them who has handed in what cannot be compared."""
    found = [Pair(one.assignment.name, one.student, f"{UNREAD}: {why}", 1.0, 0) for one in handed if (why := _unread(one.path))]
    for name in sorted({one.assignment.name for one in handed}):
        given = [words_of(path.read_text(encoding="utf-8")) for path in [*sorted((HANDOUTS / name).glob("*.py")), HANDOUTS / BESIDE]]
        programs = {one.student: _together(one.path, given) for one in handed if one.assignment.name == name}
        found += _pairs(name, programs, frozenset(one for words in given for one in prints_of(words)), alike)
    return tuple(sorted(found, key=lambda pair: (pair.prints > 0, -pair.share, pair.assignment, pair.one, pair.other)))


def _pairs(name: str, programs: Mapping[str, Words], given: frozenset[int], alike: float) -> Iterator[Pair]:
    """Those of one assignment. What is nearly the same from the first token to the last is told however many have it."""
    own = {student: trail for student, words in programs.items() if len(trail := without(trail_of(words), given)) >= _FEW}
    counts = Counter(one for trail in own.values() for one in trail)
    common = frozenset(one for one, count in counts.items() if count > max(_MANY, _COMMON * len(programs)))
    rare = {student: without(trail, common) for student, trail in own.items()}
    for one, other in combinations(own, 2):
        share, prints = _alike(rare[one], rare[other]) if min(len(rare[one]), len(rare[other])) >= _FEW else (0.0, 0)
        all_of_it, all_prints = _alike(own[one], own[other])
        if all_of_it >= ALL_ALIKE:
            yield Pair(name, one, other, all_of_it, all_prints)
        elif share >= alike:
            yield Pair(name, one, other, share, prints)
    for student, trail in own.items():
        taken = sum(one in _of_judges() for one in trail)
        share = max(taken / len(trail), _densest(trail, _of_judges()))
        if share >= alike:
            yield Pair(name, student, JUDGES, share, taken)


def _alike(one: Trail, other: Trail) -> tuple[float, int]:
    """The share of the smaller one that is in the other, or of a stretch of both, and how many fingerprints are in both."""
    first, second = frozenset(one), frozenset(other)
    both = len(first & second)
    if both < STRETCH:  # no stretch is in both
        return both / min(len(first), len(second)), both
    return max(both / min(len(first), len(second)), min(_densest(one, second), _densest(other, first))), both


def _densest(trail: Trail, other: frozenset[int]) -> float:
    """The share of a stretch that the other one has, of the stretch that it has most of; nothing where that is not nearly all."""
    most = count = sum(one in other for one in trail[:STRETCH])
    for left, taken in zip(trail, trail[STRETCH:], strict=False):
        count += (taken in other) - (left in other)
        most = max(most, count)
    return most / STRETCH if most >= ALL_ALIKE * STRETCH else 0.0


@cache
def _of_judges() -> frozenset[int]:
    """Fingerprints of what judges answers, and of the formulas that it rests on."""
    folders = (Path(module.__file__ or "").parent for module in (grading, crossflow))
    files = sorted(path for folder in folders for path in folder.rglob("*.py"))
    return frozenset(one for path in files for one in prints_of(words_of(path.read_text(encoding="utf-8"))))


def prints_of(words: Words) -> frozenset[int]:
    """The fingerprints of a program."""
    return frozenset(trail_of(words))


def without(trail: Trail, left_out: frozenset[int]) -> Trail:
    """The others, in their order."""
    return tuple(one for one in trail if one not in left_out)


def trail_of(words: Words) -> Trail:
    """Its fingerprints in the order in which they come, each once."""
    grams = [" ".join(words[place : place + K]) for place in range(len(words) - K + 1)]
    hashes = [int.from_bytes(hashlib.blake2b(gram.encode(), digest_size=8).digest(), "big") for gram in grams]
    return tuple(dict.fromkeys(min(hashes[place : place + W]) for place in range(max(1, len(hashes) - W + 1)) if hashes))


def words_of(program: str) -> Words:
    """Its tokens, up to where it is no Python."""
    words: list[str] = []
    for token in tokens_of(program):
        if token.type == tokenize.NAME:
            words.append(token.string if keyword.iskeyword(token.string) else "name")
        elif token.type not in _LEFT_OUT:
            words.append(token.string if token.type == tokenize.OP else tokenize.tok_name[token.type])
    return tuple(words)


def tokens_of(program: str) -> Iterator[tokenize.TokenInfo]:
    """One after the other, up to where it is no Python."""
    try:
        yield from tokenize.generate_tokens(io.StringIO(program).readline)
    except (tokenize.TokenError, SyntaxError):
        return


def _together(path: Path, given: Sequence[Words]) -> Words:
    """The tokens of all files of a submission but those that were handed out, whatever the files are called."""
    files = sorted({words_of(text) for text in programs_of(path)} - set(given))
    return tuple(word for words in files for word in words)


def _unread(path: Path) -> str:
    """What of a submission says nothing to who compares tokens; nothing where all of it does."""
    made = {token.string for text in programs_of(path) for token in tokens_of(text) if token.type == tokenize.NAME} & _MAKES
    return f"it may run what does not stand in it, by {', '.join(sorted(made))}" if made else ""


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
