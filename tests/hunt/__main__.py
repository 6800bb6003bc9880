"""Look for false proofs for as long as one likes: `make hunt`, or `python -m tests.hunt --seconds 600 --seed 1 [--only placement]`.

Random questions of every kind are answered by every engine and compared with what trying everything finds; their results are edited at
random, and what `check` accepts must be true. From each answer other questions follow whose least value is known, such as one with a limit
at exactly what the answer takes; they are asked too. Proofs are forged of what they cannot show. Files of every kind are hit by chance, and
each is answered or refused (`--only files`; seed N has the files of the seeds 4,000 N to 4,000 N + 3,999). Seeds and counts are printed,
and how many questions with each option of each kind were drawn, answered and compared; each finding is written to a file, and makes the
end a failure.

The time is shared by questions of all parts in turn, those that have the options which were compared too seldom, faults and files. Of some
seeds the one is taken whose question has most of these options. A question follows from its part and its seed alone: `--only PART --seed
SEED --alone` asks it again. `--sum LOG LOG` adds up what several runs printed.
"""

import signal
import sys
from argparse import ArgumentParser
from collections import Counter
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import monotonic, process_time

from crossopt.instances.errors import RefusedError
from crossopt.solvers.memory.judge import ManyStatesError
from tests.hunt.corpus import made
from tests.hunt.coverage import COLUMNS, options_of, rarity, sum_of, table_of, totals_of
from tests.hunt.drawn import APART, DRAWS, Draw, TooLargeError
from tests.hunt.faults import FAULTS
from tests.hunt.files import BATCH, Seen, hit_files, words_of
from tests.hunt.fronts import SEARCHES
from tests.hunt.held import FindingError, hunt, kept
from tests.hunt.liars import LIES

FILES = "files"
TRIED = "tried"
"""Beside the columns of the table: how often settings were laid over drawn questions."""
SEEDS, DRAWN, DRAWING, AS_IT_COMES = 64, 8, 0.25, 4
"""Seeds whose settings are compared, those of them whose questions are, the share of a part's time that this may take, and every how many
questions no seed is preferred to another."""
Table = dict[str, Counter[str]]
PARTS = (*DRAWS, *SEARCHES, *LIES, *FAULTS, FILES)
SELDOM = "seldom"
SHARES = {"questions": 0.18, SELDOM: 0.27, "faults": 0.22, FILES: 0.33}
"""Of the time."""
SHORT = 4
"""Faults of one command in a round, where there is one sweep to which several happen."""
LONG = 300.0
"""Seconds of the processor after which a question hangs."""


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
    turns: int = 0
    worth: float = 0.0
    """What its questions are worth for the table, a second, of late."""
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
    parser.add_argument("--alone", action="store_true", help="ask the question of this seed alone, once")
    parser.add_argument("--findings", type=Path, default=Path("findings"))
    parser.add_argument("--sum", type=Path, nargs="+", metavar="LOG", help="hunt nothing; add up what these runs printed")
    options = parser.parse_args()
    if options.sum:
        sys.stdout.write(sum_of(path.read_text(encoding="utf-8", errors="replace") for path in options.sum))
        return 0
    names = options.only or list(PARTS)
    if options.alone:
        bags, table = _begun(names)
        for name, bag in bags.items():
            _one(name, options.seed, options.edits, options.findings, bag, table)
    else:
        bags = hunted(names, options.seconds, options.seed, options.edits, options.findings)
    return 1 if any(bag.findings for bag in bags.values()) else 0


def _begun(names: list[str]) -> tuple[dict[str, Bag], Table]:
    return {name: Bag() for name in names}, {name: Counter[str]() for name in (*COLUMNS, TRIED)}


def hunted(names: list[str], seconds: float, seed: int, edits: int, folder: Path) -> dict[str, Bag]:
    """All kinds in turns, a seed after the other; the next turn is of those who have had the least of their share of the time."""
    (bags, table), began = _begun(names), monotonic()
    groups = {
        "questions": [name for name in names if name not in FAULTS and name != FILES],
        SELDOM: [name for name in names if name in DRAWS or name in SEARCHES],
        "faults": [name for name in names if name in FAULTS],
        FILES: [name for name in names if name == FILES],
    }
    in_turn, spent = {group: cycle(members) for group, members in groups.items()}, {group: 0.0 for group in groups if groups[group]}
    with TemporaryDirectory() as work:
        while (start := monotonic()) - began < seconds:
            group = min(spent, key=lambda group: spent[group] / SHARES[group])
            name = max(groups[SELDOM], key=lambda name: bags[name].worth) if group == SELDOM else ""
            name = name if name and bags[name].worth > 0.0 else next(in_turn[group])
            bag, before, gained = bags[name], process_time(), 0.0
            if name == FILES:
                _files(Path(work), seed + bag.turns, began + seconds, folder, bag)
            else:
                gained = _turn(name, seed + bag.turns, edits, folder, bag, table)
            took = monotonic() - start
            bag.turns += 1
            bag.spent += process_time() - before
            bag.seconds += took
            bag.worth = (bag.worth + gained / max(took, 1e-3)) / 2.0
            spent[group] += took
    _print(bags, seed, table)
    return bags


def _turn(name: str, seed: int, edits: int, folder: Path, bag: Bag, table: Table) -> float:
    """One question, or several of a kind that is answered at once; what they were worth for the table."""
    draw, worth = DRAWS.get(name), 0.0
    often = draw.often if draw else SHORT if name in FAULTS and name != "swept" else 1
    for one in range(seed * often, (seed + 1) * often):
        preferred = one if draw is None or one % AS_IT_COMES == 0 else _rarest(draw, one, bag, table)
        worth += _one(name, preferred, edits, folder, bag, table)
    return worth


def _rarest(draw: Draw, seed: int, bag: Bag, table: Table) -> int:
    """The seed of several far apart whose question has the options that were compared least, as long as to draw takes little time."""

    def untried(seed: int) -> float:
        extras = draw.extras_of(seed)
        return sum(1.0 / (1 + table[TRIED][extra]) for extra in extras) / (2 + len(extras))

    seeds = sorted(range(seed, seed + SEEDS * APART, APART), key=untried, reverse=True)
    rarest, most, until = seeds[0], -1.0, process_time() + DRAWING * bag.spent / (bag.questions or 1)
    for one in seeds[:DRAWN]:
        if process_time() >= until:
            break
        try:
            found = rarity(options_of(draw.question(one), draw.kind), table["compared"])
        except (TooLargeError, ManyStatesError, RefusedError):
            continue
        except Exception:  # noqa: BLE001 - a finding where it is asked
            return one
        rarest, most = (one, found) if found > most else (rarest, most)
    return rarest


def _print(bags: dict[str, Bag], first: int, table: Table) -> None:
    """What came of each part, and the table of options."""
    for name, bag in bags.items():
        told = "".join(f", {count:,} {what}" for what, count in sorted(bag.said.items()))
        words = f"{bag.questions:,} in {bag.seconds:,.0f} s, {bag.left_out:,} too large{told}; {len(bag.findings)} findings"
        words += f"; {bag.spent / (bag.questions or 1):.2f} s of the processor each" if bag.spent >= 1.0 else ""
        sys.stdout.write(f"{name:<16} seeds {first} to {first + bag.turns - 1}: {words}\n{words_of(bag.seen) if name == FILES else ''}")
    if table["drawn"]:
        sys.stdout.write(table_of(table))
    faults = sum((bag.said for name, bag in bags.items() if name in FAULTS), Counter[str]())
    sums = sum((bag.said for name, bag in bags.items() if name not in FAULTS), Counter[str]())
    sums = Counter({what: sums[what] for what in ("compared", "forged")})
    sums["questions"] = sum(bag.questions for name, bag in bags.items() if name in DRAWS or name in SEARCHES)
    sums["files"] = sum(bag.seen.files for bag in bags.values())
    sums["findings"] = sum(len(bag.findings) for bag in bags.values())
    sys.stdout.write(totals_of(sums, faults, table["compared"]))


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
        return FAULTS[name](random)
    return LIES[name](seed, random)


def _hunted_one(name: str, seed: int, random: Random, edits: int, table: Table) -> tuple[Counter[str], float]:
    """One drawn question, with its options in the table, and what it was worth."""
    if name in SEARCHES:
        question, said = SEARCHES[name](seed, random, edits)
        own = options_of(question)
    else:
        table[TRIED].update(extras := DRAWS[name].extras_of(seed))
        drawn = DRAWS[name](seed)
        laid = set(getattr(drawn.question, "document", {}).get("settings", ()))
        for extra in extras:  # what its reader takes seldom is tried more often
            table[TRIED][extra] += 4 * laid.issuperset(extra.split(" ; "))
        own, said = options_of(drawn.question, drawn.kind), hunt(drawn, random, edits)
    worth = rarity(own, table["compared"]) if said["compared"] else 0.0
    table["drawn"].update(own)
    for column in COLUMNS[1:]:
        table[column].update(own if said[column] else ())
    return said, worth


def _one(name: str, seed: int, edits: int, folder: Path, bag: Bag, table: Table) -> float:
    """One question of a part; what it was worth for the table."""
    random, worth = Random(f"{name} {seed}"), 0.0
    signal.signal(signal.SIGPROF, _late)
    signal.setitimer(signal.ITIMER_PROF, LONG)
    try:
        said, worth = (
            _hunted_one(name, seed, random, edits, table) if name in DRAWS or name in SEARCHES else (_asked(name, seed, random), 0.0)
        )
        bag.said += said
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
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    sys.stdout.flush()
    return worth


def _late(*_: object) -> None:
    raise FindingError(f"it has not ended after {LONG:.0f} s of the processor", {})


if __name__ == "__main__":
    sys.exit(main())
