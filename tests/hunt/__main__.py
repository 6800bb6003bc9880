"""Look for false proofs for as long as one likes: `make hunt`, or `python -m tests.hunt --seconds 600 --seed 1 [--only placement]`.

Random questions of every kind are answered by every engine and compared with what trying everything finds; their results are edited at
random, and what `check` accepts must be true. Seeds and counts are printed; each finding is written to a file, and makes the end a failure.
"""

import sys
from argparse import ArgumentParser
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import monotonic

from crossopt.instances.errors import RefusedError
from tests.hunt.drawn import DRAWS, TooLargeError
from tests.hunt.faults import FAULTS
from tests.hunt.held import FindingError, hunt, kept


@dataclass(slots=True)
class Bag:
    """What was seen of one kind of question."""

    questions: int = 0
    results: int = 0
    """Answers and edits of them."""
    left_out: int = 0
    """Questions too large to be tried."""
    findings: list[str] = field(default_factory=list)


def main() -> int:
    """Hunt in turns until the time is over; 1 where anything was found."""
    parser = ArgumentParser(prog="python -m tests.hunt", description="Look for false proofs in random questions and edited results.")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=1, help="the first one; each round has the next")
    parser.add_argument("--edits", type=int, default=25, help="of each result")
    parser.add_argument("--only", choices=[*DRAWS, *FAULTS], action="append")
    parser.add_argument("--findings", type=Path, default=Path("findings"))
    options = parser.parse_args()
    bags = hunted(options.only or [*DRAWS, *FAULTS], options.seconds, options.seed, options.edits, options.findings)
    return 1 if any(bag.findings for bag in bags.values()) else 0


def hunted(names: list[str], seconds: float, seed: int, edits: int, folder: Path) -> dict[str, Bag]:
    """All kinds in turns, a seed after the other."""
    bags, began, first = {name: Bag() for name in names}, monotonic(), seed
    while monotonic() - began < seconds:
        for name, bag in bags.items():
            if monotonic() - began < seconds:
                _one(name, seed, edits, folder, bag)
        seed += 1
    for name, bag in bags.items():
        words = f"{bag.questions:,} questions, {bag.results:,} results and edits, {bag.left_out:,} too large"
        sys.stdout.write(f"{name:<16} seeds {first} to {seed - 1}: {words}, {len(bag.findings)} findings\n")
    return bags


def _one(name: str, seed: int, edits: int, folder: Path, bag: Bag) -> None:
    random = Random(f"{name} {seed}")
    try:
        bag.results += FAULTS[name](random) if name in FAULTS else hunt(DRAWS[name](seed), random, edits)
        bag.questions += 1
    except (TooLargeError, RefusedError):
        bag.left_out += 1
    except FindingError as found:
        folder.mkdir(parents=True, exist_ok=True)
        bag.findings.append(f"{name}, seed {seed}: {found}")
        sys.stdout.write(f"FOUND  {bag.findings[-1]}\n       {kept(folder, name, seed, found.data)}\n")
    except Exception as error:  # noqa: BLE001 - whatever an engine or a check dies of is a finding too
        bag.findings.append(f"{name}, seed {seed}: {type(error).__name__}: {error}")
        sys.stdout.write(f"FOUND  {bag.findings[-1]}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
