"""Look for false proofs for as long as one likes: `make hunt`, or `python -m tests.hunt --seconds 600 --seed 1 [--only placement]`.

Random questions of every kind are answered by every engine and compared with what trying everything finds; their results are edited at
random, and what `check` accepts must be true. Proofs are forged of what they cannot show. Files of every kind are hit by chance, and each
is answered or refused (`--only files`; seed N has the files of the seeds 4,000 N to 4,000 N + 3,999). Seeds and counts are printed,
and how many questions with each option of each kind were drawn, answered and compared; each finding is written to a file, and makes the
end a failure.
"""

import sys
from argparse import ArgumentParser
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import monotonic, process_time

from crossopt.instances.errors import RefusedError
from crossopt.solvers.memory.judge import ManyStatesError
from tests.hunt.corpus import made
from tests.hunt.coverage import COLUMNS, options_of, table_of
from tests.hunt.drawn import DRAWS, TooLargeError
from tests.hunt.faults import FAULTS
from tests.hunt.files import BATCH, Seen, hit_files, words_of
from tests.hunt.fronts import SEARCHES
from tests.hunt.held import FindingError, hunt, kept
from tests.hunt.liars import LIES

FILES = "files"
TRIED = "tried"
"""Beside the columns of the table: how often settings were laid over drawn questions."""
Table = dict[str, Counter[str]]
PARTS = (*DRAWS, *SEARCHES, *LIES, *FAULTS, FILES)


@dataclass(slots=True)
class Bag:
    """What was seen of one kind of question."""

    questions: int = 0
    said: Counter[str] = field(default_factory=Counter)
    """Results with edits of them, and what engines and checks said of the honest ones."""
    left_out: int = 0
    """Questions too large to be tried."""
    seconds: float = 0.0
    """Of the clock."""
    spent: float = 0.0
    """Seconds of the processor, without those of other processes."""
    findings: list[str] = field(default_factory=list)
    seen: Seen = field(default_factory=Seen)
    """What came of files."""


def main() -> int:
    """Hunt in turns until the time is over; 1 where anything was found."""
    parser = ArgumentParser(prog="python -m tests.hunt", description="Look for false proofs in random questions and edited results.")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=1, help="the first one; each round has the next")
    parser.add_argument("--edits", type=int, default=25, help="of each result")
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--findings", type=Path, default=Path("findings"))
    options = parser.parse_args()
    bags = hunted(options.only or list(PARTS), options.seconds, options.seed, options.edits, options.findings)
    return 1 if any(bag.findings for bag in bags.values()) else 0


def hunted(names: list[str], seconds: float, seed: int, edits: int, folder: Path) -> dict[str, Bag]:
    """All kinds in turns, a seed after the other."""
    bags, table, began, first = {name: Bag() for name in names}, {name: Counter[str]() for name in (*COLUMNS, TRIED)}, monotonic(), seed
    with TemporaryDirectory() as work:
        while monotonic() - began < seconds:
            for name, bag in bags.items():
                start, before = monotonic(), process_time()
                if name == FILES and start - began < seconds:
                    _files(Path(work), seed, began + seconds, folder, bag)
                elif start - began < seconds:
                    often = DRAWS[name].often if name in DRAWS else 1
                    for place in range(often):
                        _one(name, seed * often + place, edits, folder, bag, table)
                bag.seconds += monotonic() - start
                bag.spent += process_time() - before
            seed += 1
    for name, bag in bags.items():
        told = "".join(f", {count:,} {what}" for what, count in sorted(bag.said.items()))
        words = f"{bag.questions:,} in {bag.seconds:,.0f} s, {bag.left_out:,} too large{told}; {len(bag.findings)} findings"
        words += f"; {bag.spent / (bag.questions or 1):.2f} s of the processor each" if bag.spent >= 1.0 else ""
        sys.stdout.write(f"{name:<16} seeds {first} to {seed - 1}: {words}\n{words_of(bag.seen) if name == FILES else ''}")
    if table["drawn"]:
        sys.stdout.write(table_of(table))
    return bags


def _files(work: Path, seed: int, until: float, folder: Path, bag: Bag) -> None:
    """Some thousand files that were hit by chance; the sound ones are made in the first turn."""
    given = work / "given"
    if not given.exists():
        made(work)
    hit_files(given, seed * BATCH, folder / FILES, sys.stdout.write, bag.seen, until=until)
    bag.questions, bag.findings = bag.seen.files, bag.seen.findings
    sys.stdout.flush()


def _asked(name: str, seed: int, random: Random) -> Counter[str]:
    """One question of a part, and what came of it."""
    if name in FAULTS:
        return Counter(results=FAULTS[name](random))
    return LIES[name](seed, random)


def _hunted_one(name: str, seed: int, random: Random, edits: int, table: Table) -> Counter[str]:
    """One drawn question, with its options in the table."""
    if name in SEARCHES:
        question, said = SEARCHES[name](seed, random, edits, table["compared"], table[TRIED])
        own = options_of(question)
    else:
        drawn = DRAWS[name](seed, table["compared"], table[TRIED])
        own, said = options_of(drawn.question, drawn.kind), hunt(drawn, random, edits)
    table["drawn"].update(own)
    for column in COLUMNS[1:]:
        table[column].update(own if said[column] else ())
    return said


def _one(name: str, seed: int, edits: int, folder: Path, bag: Bag, table: Table) -> None:
    random = Random(f"{name} {seed}")
    try:
        bag.said += _hunted_one(name, seed, random, edits, table) if name in DRAWS or name in SEARCHES else _asked(name, seed, random)
        bag.questions += 1
    except (TooLargeError, ManyStatesError, RefusedError):
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
