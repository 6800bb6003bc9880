"""Files that were hit by chance: bytes, lines, figures, keys, values, types, nesting, numbers and letters of all kinds."""

import copy
import gzip
import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any

import yaml

from tests import certificates
from tests.solvers.codesign.editing import at, edits, leaves

MARK = "<script>hit</script>"
"""What no page may have in it as it is."""
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, 10**30, -(10**400), 0.5, -0.0, 1e-320, 1e308, -1e308, float("inf"), float("nan")),
    *(
        "",
        " ",
        "-",
        "0",
        "1e999",
        "nan",
        ".nan",
        "-.inf",
        ".",
        "..",
        "../x",
        "/dev/zero",
        "~",
        "null",
        "0x1F",
        "1_000",
        "1:30",
        "2001-01-01",
    ),
    *("!!python/object:os.system", "*a", "&a", "<<", "{{", "]", "{from: 1, to: 9, step: 0}", "divisors", "[1, 1]"),
    *(
        "é",
        "日本",
        "\u202e",
        "\ufeff",
        "\x00",
        "\x1b[2J",
        "😀" * 50,
        "\ud800",
        "x" * 5000,
        "9" * 5000,
        "1 GB",
        "-3 s",
        "1e400 W",
        "a\nb",
        MARK,
    ),
    *([], {}, [[]], {"": {}}, [None] * 300, {"form": "unverified"}, {"kind": "codesign"}, {"from": 1, "to": 10**9, "step": 1}),
    *(12, 100, 1024, 10**5, 10**7, 3 * 10**9),
)
FIGURES = (
    *("0", "-1", "1", "nan", ".inf", "-.inf", "1e999", "-1e308", "1e-320"),
    *("9" * 400, "0.1", "1000000", "99999999", "2147483648", "1 GB", "0x10", "1e6", "1e9", "1e18"),
)
NESTED = ("[" * 3000, "{a: " * 3000, "- " * 3000, "[" * 200 + "]" * 200, "{" * 20_000, "- - - - ? ? ? : :", "&a [*a, *a]", "&a {<<: *a}")
_GROWING = "".join(f"&{name} [{', '.join([f'*{other}'] * 9)}], " for other, name in pairwise("abcdefghi"))
LAUGHS = f"[&a [x, x, x, x, x, x, x, x, x], {_GROWING}1]"
"""Few letters that stand for a billion."""
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def mutant(name: str, given: bytes, others: Sequence[bytes], random: Random) -> bytes:
    """A file of that name with something else in it; others of its sort lend it their parts."""
    if name.endswith(".gz"):
        inner = mutant(name.removesuffix(".gz"), gzip.decompress(given), [gzip.decompress(other) for other in others], random)
        return spoiled(given, random) if random.random() < 0.2 else gzip.compress(inner, 1, mtime=0)
    draw = random.random()
    if name.endswith(".result.json") and draw < 0.5:
        return json.dumps(claimed(parsed(name, given), random)).encode()
    if name.endswith(".vipr") and draw < 0.6:
        return next(certificates.edited(given.decode(), random.randrange(1 << 30), 1)).encode()
    if name.endswith((".json", ".yaml")) and draw < 0.65:
        return _of_data(name, given, others, random)
    if draw < 0.85:
        return _of_lines(given, others, random)
    return spoiled(given, random)


def _of_data(name: str, given: bytes, others: Sequence[bytes], random: Random) -> bytes:
    """The data of a file with some parts changed."""
    data = parsed(name, given)
    for _ in range(random.choice([1, 1, 1, 2, 5])):
        data = hit(data, random) if random.random() < 0.8 or not others else lent(data, parsed(name, random.choice(others)), random)
    try:
        if name.endswith(".yaml") and random.random() < 0.7:
            return yaml.safe_dump(data, sort_keys=False, allow_unicode=True).encode("utf-8", "surrogatepass")
        return json.dumps(data).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError, yaml.YAMLError):
        return given


@cache
def parsed(name: str, given: bytes) -> Any:  # noqa: ANN401
    """The data in a file of the corpus, which is sound; nobody changes it."""
    return json.loads(given) if name.endswith(".json") else yaml.load(given, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506


def claimed(result: Any, random: Random) -> Any:  # noqa: ANN401
    """A result of the same form that claims something else: a figure or two, or what a liar changes together."""
    result = copy.deepcopy(result)
    places = [path for path in leaves(result) if path and path[0] != "question"]
    for _ in range(random.choice([1, 1, 1, 2, 4])):
        path = random.choice(places)
        inner = at(result, path[:-1])
        if path[-1] in (inner if isinstance(inner, dict) else range(len(inner))):
            old = inner[path[-1]]
            number = isinstance(old, int | float) and not isinstance(old, bool)
            inner[path[-1]] = changed(old, random) if number and random.random() < 0.5 else random.choice(edits(old))
    if random.random() < 0.4 and {"value", "bound", "proof"} <= result.keys():
        lie(result, random)
    return result


def lie(forged: dict[str, Any], random: Random) -> None:
    """What a liar would change together."""
    value, share = forged["value"], random.choice((1e-12, 1e-6, 0.01, 0.5))
    match random.randrange(4):
        case 0 if value is not None:
            forged |= {"bound": value, "gap": 0.0, "status": "OPTIMAL", "proved": True}
        case 1 if isinstance(forged["bound"], int | float):
            forged["bound"] = type(forged["bound"])(forged["bound"] * (1.0 + share) + 1)
        case 2:
            empty = dict.fromkeys(("value", "bound", "gap", "answer", "details"))
            forged |= {**empty, "status": "INFEASIBLE", "proved": True, "trace": [], "baselines": []}
        case _:
            forged["proof"] = random.choice(
                (None, {"by": "counting", "form": "recomputable"}, {"by": "highs", "form": "unverified"}, forged["proof"])
            )


def paths_in(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401
    """The ways to every value."""
    yield path
    for key, inner in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from paths_in(inner, (*path, key))


def nested(depth: int, random: Random) -> Any:  # noqa: ANN401
    """Something odd in many brackets."""
    found: Any = random.choice(ODD)
    for _ in range(depth):
        found = [found] if random.random() < 0.5 else {"a": found}
    return found


def hit(data: Any, random: Random) -> Any:  # noqa: ANN401
    """Plain data with one thing changed."""
    data = copy.deepcopy(data)
    ways = list(paths_in(data))
    path = random.choice(ways[1:] or [()])
    if not path:
        return random.choice(ODD)
    place, key = at(data, path[:-1]), path[-1]
    match random.randrange(10):
        case 9 if isinstance(place[key], str):
            place[key] = misspelled(place[key], random)
        case 0 if isinstance(place, dict):
            place[str(random.choice(ODD))] = place.pop(key)
        case 1:
            del place[key]
        case 2 if isinstance(place, list):
            place.extend(place[:50] * random.choice([1, 7]))
        case 3:
            place[key] = nested(random.choice([1, 5, 40, 150]), random)
        case 4 | 5 if isinstance(place[key], int | float) and not isinstance(place[key], bool):
            place[key] = changed(place[key], random)
        case 6:
            place[key] = copy.deepcopy(at(data, random.choice(ways)))
        case 7:
            _swap(data, path, random.choice(ways))
        case 8:
            place[key] = (
                {str(place[key]): place[key]} if random.random() < 0.3 else str(place[key]) if random.random() < 0.5 else [place[key]]
            )
        case _:
            place[key] = random.choice(ODD)
    return data


def misspelled(word: str, random: Random) -> str:
    """A word with a letter too few or too many, or two that changed places."""
    place = random.randrange(len(word) + 1)
    before, after = word[:place], word[place:]
    return random.choice([before + after[1:], before + after[:1] + after, before + after[1:2] + after[:1] + after[2:], f"{before}-{after}"])


def changed(number: float, random: Random) -> float:
    """Another number, near or far."""
    factor = random.choice([0, -1, 0.5, 2, 3, 10, 64, 1000, 10**5, 1 + 1e-15, 1 - 1e-15, 1 + 1e-9, 1e9, 1e300, 10**12])
    try:
        return random.choice([number * factor, number + random.choice([1, -1]), int(number), float(number)])
    except (OverflowError, ValueError):
        return number


def _swap(data: Any, one: tuple[Any, ...], other: tuple[Any, ...]) -> None:  # noqa: ANN401
    """Two blocks change places, unless one lies in the other."""
    if not other or one[: len(other)] == other or other[: len(one)] == one:
        return
    first, second = copy.deepcopy(at(data, one)), copy.deepcopy(at(data, other))
    place, elsewhere = at(data, one[:-1]), at(data, other[:-1])  # before anything moves: a list that was doubled has its parts twice
    place[one[-1]], elsewhere[other[-1]] = second, first


def lent(data: Any, other: Any, random: Random) -> Any:  # noqa: ANN401
    """The data with the block that another file has at the same place, or at any."""
    data, ways = copy.deepcopy(data), list(paths_in(other))
    both = [path for path in ways if path and _has(data, path)]
    if not both:
        return other
    path = random.choice([path for path in both if len(path) == 1] if random.random() < 0.5 else both)
    at(data, path[:-1])[path[-1]] = copy.deepcopy(at(other, path if random.random() < 0.8 else random.choice(ways)))
    return data


def _has(data: Any, path: tuple[Any, ...]) -> bool:  # noqa: ANN401
    for step in path:
        if not (step in data if isinstance(data, dict) else isinstance(data, list) and step in range(len(data))):
            return False
        data = data[step]
    return True


def _of_lines(text: bytes, others: Sequence[bytes], random: Random) -> bytes:
    """A text with other lines, figures and words."""
    for _ in range(random.choice([1, 1, 1, 2, 4])):
        lines = text.split(b"\n")
        row = random.randrange(len(lines))
        match random.randrange(9):
            case 8:
                lines[row] = misspelled(lines[row].decode("utf-8", "surrogateescape"), random).encode("utf-8", "surrogateescape")
            case 0:
                del lines[row]
            case 1:
                lines.insert(random.randrange(len(lines) + 1), lines[row])
            case 2:
                other = random.choice([*others, text]).split(b"\n")
                start = random.randrange(len(other))
                lines[row:row] = other[start : start + random.choice([1, 3, 30])]
            case 3:
                lines[row] = random.choice([b"  ", b" ", b"\t", b"- "]) + lines[row]
            case 4:
                lines = [*lines[:row], lines[row][: random.randrange(len(lines[row]) + 1)]]
            case _:
                lines = _with_figure(text, random).split(b"\n")
        text = b"\n".join(lines)
    return text


def _with_figure(text: bytes, random: Random) -> bytes:
    """A text with something else where a number was, or behind a colon."""
    found = list(_NUMBER.finditer(text)) if random.random() < 0.7 else list(re.finditer(rb"(?<=: )[^,\n}]+", text))
    if not found:
        return text
    place, odd = random.choice(found), random.choice(ODD)
    words = random.choice([random.choice(FIGURES), random.choice(FIGURES), str(odd), random.choice(NESTED), LAUGHS])
    return text[: place.start()] + words.encode("utf-8", "surrogatepass") + text[place.end() :]


def spoiled(text: bytes, random: Random) -> bytes:
    """A text with some bytes changed, lost, doubled or put elsewhere, or with its end cut off."""
    for _ in range(random.choice([1, 1, 1, 3, 20])):
        at, length = random.randrange(len(text) + 1), random.choice([1, 1, 2, 10, 100])
        odd = str(random.choice(ODD)).encode("utf-8", random.choice(["replace", "surrogatepass"]))
        piece = random.choice([b"", bytes([random.randrange(256)]), text[at : at + length] * 2, odd])
        start = random.randrange(len(text) + 1)
        text = text[:start] + piece + text[start + random.choice([0, length]) :]
    if random.random() < 0.15:
        return random.choice(
            [b"\xef\xbb\xbf" + text, text[: random.randrange(len(text) + 1)], text.decode("utf-8", "replace").encode("utf-16")]
        )
    return text
