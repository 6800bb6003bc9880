"""Which programs of a class are alike: fingerprints of their tokens, whatever their names, figures, comments and layout.

A fingerprint is the hash of K tokens in a row, and of every W neighbours the least is kept (winnowing: Schleimer, Wilkerson and Aiken,
SIGMOD 2003). Those of the starter, and those that many submissions have, say nothing. Two programs are alike by the share of the smaller
one's fingerprints that the other one has. It is a reason to look at both, and no proof: short functions have few right forms.
"""

import hashlib
import io
import keyword
import tokenize
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from crossopt.solvers.grading.classes.handed_in import HandedIn
from crossopt.solvers.grading.handouts import HANDOUTS

K, W = 12, 6
"""Tokens of a fingerprint, and neighbours of which the least is kept."""
ALIKE = 0.6
"""The share from which a pair is told: an estimate, to be set by looking at what is told."""
_COMMON, _FEW = 0.25, 8
"""The share of submissions that make a fingerprint common; and fingerprints below which a program says too little."""
_BYTES = 1 << 20
_LEFT_OUT = {tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER, tokenize.NEWLINE}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two students whose programs are alike, and the share of the smaller one that is in the other."""

    assignment: str
    one: str
    other: str
    share: float
    prints: int


def find_similar(handed: Sequence[HandedIn], alike: float = ALIKE) -> tuple[Pair, ...]:
    """Pairs of each assignment, the most alike first."""
    found: list[Pair] = []
    for name in sorted({one.assignment.name for one in handed}):
        programs = {one.student: prints_of(program_of(one.path)) for one in handed if one.assignment.name == name}
        found += _pairs(name, programs, alike)
    return tuple(sorted(found, key=lambda pair: (-pair.share, pair.assignment, pair.one, pair.other)))


def _pairs(name: str, programs: Mapping[str, frozenset[int]], alike: float) -> list[Pair]:
    starter = HANDOUTS / name / "starter.py"
    given = prints_of(starter.read_text(encoding="utf-8")) if starter.is_file() else frozenset()
    counts = Counter(one for prints in programs.values() for one in prints)
    common = {one for one, count in counts.items() if count > max(4, _COMMON * len(programs))}
    own = {student: prints - given - common for student, prints in programs.items()}
    told = {student: prints for student, prints in own.items() if len(prints) >= _FEW}
    pairs = ((one, other, len(told[one] & told[other]), min(len(told[one]), len(told[other]))) for one, other in combinations(told, 2))
    return [Pair(name, one, other, both / least, both) for one, other, both, least in pairs if both >= alike * least]


def prints_of(program: str) -> frozenset[int]:
    """The fingerprints of a program."""
    words = _words(program)
    grams = [" ".join(words[place : place + K]) for place in range(len(words) - K + 1)]
    hashes = [int.from_bytes(hashlib.blake2b(gram.encode(), digest_size=8).digest(), "big") for gram in grams]
    return frozenset(min(hashes[place : place + W]) for place in range(max(1, len(hashes) - W + 1)) if hashes)


def _words(program: str) -> list[str]:
    """Its tokens: names, figures and texts by their kind alone; up to where it is no Python."""
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
    return words


def program_of(path: Path) -> str:
    """The text of `solution.py` in a submission; nothing where there is none that can be read."""
    try:
        if path.is_dir():
            found = sorted((file for file in path.rglob("solution.py") if file.is_file()), key=lambda file: len(file.parts))
            return found[0].read_bytes()[:_BYTES].decode("utf-8", "replace") if found else ""
        with zipfile.ZipFile(path) as archive:
            names = sorted((name for name in archive.namelist() if name.rpartition("/")[2] == "solution.py"), key=len)
            if not names:
                return ""
            with archive.open(names[0]) as file:
                return file.read(_BYTES).decode("utf-8", "replace")
    except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, ValueError):
        return ""
