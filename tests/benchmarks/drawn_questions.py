"""How often do rivals find what is proved? `python -m tests.benchmarks.drawn_questions [QUESTIONS]` draws questions and writes the page, in
some quarter of an hour of two cores.

Each question is drawn from the distribution that `drawn` states, one family after the other, and proved by enumeration. Every rival
then has the same seconds for it, of each of two budgets, those that draw at random with each of three seeds. All seconds are those of
this process and not of the clock on the wall, so that others on the machine take nothing from anybody. A question is solved where the
judge prices a rival's design at the very optimum, to the last bit.
"""

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from random import Random
from statistics import median
from typing import Any, Final

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_question
from crossopt.instances.errors import RefusedError
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.codesign import engines as _engines  # noqa: F401 - loaded before its clock is changed
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.family import solve
from tests.paths import ROOT
from tests.solvers.codesign.questions import TINY_FREE

PAGE: Final = ROOT / "reports" / "gallery" / "drawn-questions.md"
QUESTIONS, SEED, PROCESSES = 200, 2026, 2
BUDGETS: Final = (0.05, 0.2)
"""Seconds of every rival."""
SEEDS: Final = (0, 1, 2)
RULES: Final = ("recipes", "plan-only", "hardware-only")

SEARCHERS: Final = ("alternating", "random", "greedy", "local", "anneal", "genetic", "gradient", "tpe")
MODELS: Final = ("gpt3-1.3b", "gpt3-2.7b", "gpt3-6.7b", "gpt3-13b", "llama3.2-3b", "llama2-7b", "llama3-8b", "llama2-13b")
QUESTION: Final = """\
kind: codesign
workload: {{model: {model}, global_batch: {batch}, sequence: {sequence}, precision: bf16}}
cluster: {{devices: {devices}, devices_per_node: 8{network}}}
technology: accelerator-7nm
budget: {{die_area: {die} mm^2, package_area: 1700 mm^2, power: {power} W}}
choices:
  compute_area: {{from: 100 mm^2, to: 700 mm^2, step: 60 mm^2}}
  compute_power: {{from: 40 W, to: 280 W, step: 30 W}}
  l2_area: [20 mm^2, 50 mm^2, 80 mm^2]
  hbm_stacks: {stacks}
  tensor: divisors
  pipeline: divisors
  microbatch: [1, 2, 4]
  interleave: [1, 2]
  sequence_parallel: [false, true]
  recompute: [none, full]
  zero: [0, 1]
objective: {objective}
"""
_FAIR: Final = {"die": (600, 700, 815), "power": (300, 350, 400, 450), "stacks": ("[2, 4, 6]",), "network": ("",)}
FAMILIES: Final[dict[str, dict[str, tuple[Any, ...]]]] = {
    "usual budgets": _FAIR,
    "little power": _FAIR | {"power": (180, 200, 220, 250)},
    "small die": _FAIR | {"die": (300, 350, 400, 450)},
    "little memory": _FAIR | {"stacks": ("[1, 2]",)},
    "slow network": _FAIR | {"network": (", cluster: {bandwidth: 3 GB/s}", ", cluster: {bandwidth: 6 GB/s}")},
}
"""What is drawn from in each, with equal chances."""


@dataclass(slots=True)
class Tried:
    """What a rival came to on the questions of a family with one budget: how far above the optimum it is with each seed; infinite where it
    found no design."""

    above: list[tuple[float, ...]] = field(default_factory=list)

    @property
    def shares(self) -> list[float]:
        """Of the questions that are solved, with each seed, the least first."""
        return sorted(sum(one == 0.0 for one in column) / len(column) for column in zip(*self.above, strict=True))

    @property
    def solved(self) -> float:
        """The middle one."""
        return median(self.shares)

    @property
    def said(self) -> str:
        """The middle one, and from which to which they go."""
        least, *_, most = self.shares * 2
        return f"{self.solved:.0%}" if least == most else f"{self.solved:.0%} ({least:.0%} to {most:.0%})"

    @property
    def middle(self) -> list[float]:
        """Of each question the distance that the seed in the middle came to."""
        return [median(one) for one in self.above]

    def at(self, share: float) -> str:
        """The distance that this share of the questions keeps."""
        ordered = sorted(self.middle)
        far = ordered[min(int(share * len(ordered)), len(ordered) - 1)]
        return "none" if far == float("inf") else f"{far:.2%}"


Results = dict[float, dict[str, dict[str, Tried]]]
"""By budget, by family, by rival."""


def drawn(family: str, random: Random) -> str:
    """The text of a question: network, devices, batch, sequence, objective and budgets, each drawn with equal chances."""
    devices = random.choice((16, 32, 64))
    return QUESTION.format(
        model=random.choice(MODELS),
        devices=devices,
        batch=devices * random.choice((2, 4, 8, 16)),
        sequence=random.choice((1024, 2048, 4096)),
        objective=random.choice(("step_time", "energy_per_token")),
        **{name: random.choice(values) for name, values in FAMILIES[family].items()},
    )


def on_own_seconds() -> None:
    """From now on engines count the seconds of this process."""
    clock, own = time.monotonic, time.process_time
    for name, module in list(sys.modules.items()):
        if name.startswith("crossopt.") and getattr(module, "monotonic", None) is clock:
            module.monotonic = own  # type: ignore[attr-defined]
    time.monotonic = own


def tried(number: int) -> dict[tuple[float, str], tuple[float, ...]]:
    """How far above its optimum every rival is on a question with each budget and seed; a question without a design is drawn again."""
    random, optimum = Random(f"{SEED}, {number}"), None
    while optimum is None:
        text = drawn(family_of(number), random)
        instance = read_question({"text": text, "source": "drawn.yaml", "settings": []})
        result = solve(FAMILY, instance, "exhaustive", Limits(), unwatched)
        optimum = result.value
    if not result.proved:
        raise RuntimeError("an enumeration proves its answer")
    return {
        (seconds, rival): tuple(above(instance, rival, Limits(seconds, seed=seed), optimum) for seed in seeds_of(rival))
        for seconds in BUDGETS
        for rival in _known()
    }


def seeds_of(rival: str) -> tuple[int, ...]:
    """All seeds of whoever draws, and one of whoever does not."""
    return SEEDS if rival in FAMILY.seeded else SEEDS[:1]


def family_of(number: int) -> str:
    """The families take turns."""
    return list(FAMILIES)[number % len(FAMILIES)]


def above(instance: Instance, rival: str, limits: Limits, optimum: float) -> float:
    """How far the rival's design is above the optimum."""
    value = solve(FAMILY, instance, rival, limits, unwatched).value
    return float("inf") if value is None else value / optimum - 1.0 if value != optimum else 0.0


@cache
def _known() -> tuple[str, ...]:
    """The rivals that are installed; each answers here before its seconds count, so that nothing is loaded in them."""
    found, question = list[str](), read_question({"text": TINY_FREE, "source": "tiny.yaml", "settings": []})
    for rival in (*RULES, *SEARCHERS):
        try:
            solve(FAMILY, question, rival, Limits(BUDGETS[-1]), unwatched)
        except RefusedError:
            continue
        found.append(rival)
    return tuple(found)


def results(count: int, tell: Callable[[str], object]) -> Results:
    """What every rival comes to on every question."""
    found: Results = {seconds: {family: {} for family in FAMILIES} for seconds in BUDGETS}
    with ProcessPoolExecutor(PROCESSES, initializer=on_own_seconds) as pool:
        for number, distances in enumerate(pool.map(tried, range(count))):
            for (seconds, rival), above_it in distances.items():
                found[seconds][family_of(number)].setdefault(rival, Tried()).above.append(above_it)
            tell(f"\r{number + 1:,} of {count:,} questions")
    tell("\n")
    return found


def page(found: Results, count: int) -> str:
    """The tables, and how the questions were drawn."""
    return "\n".join([*_head(count), *(line for seconds in BUDGETS for line in _of_budget(found[seconds], seconds))])


def _of_budget(found: dict[str, dict[str, Tried]], seconds: float) -> list[str]:
    """What rivals come to in so many seconds, over all questions and by family."""
    rivals = list(next(iter(found.values())))
    every = {rival: Tried([one for family in found.values() for one in family[rival].above]) for rival in rivals}
    order = sorted(rivals, key=lambda rival: -every[rival].solved)
    rows = [[rival, every[rival].said, every[rival].at(0.5), every[rival].at(0.9), _worst(every[rival])] for rival in order]
    hardest = sorted(found, key=lambda family: found[family]["alternating"].solved)
    shares = [[family, *(f"{found[family][rival].said}, {found[family][rival].at(0.9)}" for rival in order[:6])] for family in hardest]
    worth = [[family, *_worth(found[family])] for family in hardest]
    return [
        f"## {seconds:g} s for each rival",
        "",
        *_table(["rival", "solves", "median above", "a tenth is above", "worst"], rows),
        "",
        f"### Where choosing together pays in {seconds:g} s",
        "",
        "Share solved, and what a tenth of the questions is above, by family, the one first where alternating solves least:",
        "",
        *_table(["family", *order[:6]], shares),
        "",
        "Chip or plan chosen alone, and by turns: the median distance from the proved optimum, and what a tenth is above.",
        "",
        *_table(["family", "plan alone, on the recipe's chip", "chip alone, for the recipe's plan", "alternating"], worth),
        "",
    ]


def _head(count: int) -> list[str]:
    ranges = [f"`{family}`: {', '.join(f'{name} {_said(values)}' for name, values in of.items())}" for family, of in FAMILIES.items()]
    budgets = " and ".join(f"{seconds:g}" for seconds in BUDGETS)
    return [
        "# Drawn questions",
        "",
        f"{count:,} questions drawn at random (seed {SEED}), each proved by enumeration; every rival had {budgets} s of the processor",
        f"for each, with each of {len(SEEDS)} seeds where it draws: of shares solved stand the middle one and, in brackets, the least and",
        "the greatest, of distances that of the seed in the middle, but of the worst. A question is solved where the rival's design is",
        "priced at the very optimum. One without a design was drawn again.",
        "`python -m tests.benchmarks.drawn_questions` draws and answers all of them again. Not asked are",
        "`cma-es` and `bayesian`, which have hardly begun in such a time, and `expert`, which has no other chip than the usual one; with",
        "more time every searcher solves more: the budget is a choice, made so that one tells them apart.",
        "",
        f"Networks are {', '.join(MODELS)}.",
        "There are 16, 32 or 64 devices, with 2, 4, 8 or 16 samples for each, of 1,024, 2,048 or 4,096 tokens; step time or",
        "energy of a token is least; chips of `accelerator-7nm` with 11 areas and nine powers of the cores, three areas of L2 and the",
        "stacks below; every degree, three microbatches, two interleavings, sequence parallelism, recomputation and ZeRO open.",
        "By family, in mm^2 and W:",
        "",
        *(f"- {line}" for line in ranges),
        "",
    ]


def _said(values: Sequence[object]) -> str:
    words = [str(one).replace(", cluster: {bandwidth: ", "").removesuffix("}") or "as usual" for one in values]
    return " or ".join(words)


def _worst(tried: Tried) -> str:
    every = [max(one) for one in tried.above]
    lost = sum(one == float("inf") for one in every)
    return f"no design in {lost:,}" if lost else f"{max(every):.2%}"


def _worth(family: dict[str, Tried]) -> list[str]:
    middles = {rival: median(family[rival].middle) for rival in ("plan-only", "hardware-only", "alternating")}
    return [f"{middle:.2%}, {family[rival].at(0.9)}" if middle < float("inf") else "none" for rival, middle in middles.items()]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *(f"| {' | '.join(row)} |" for row in rows)]


def main() -> None:
    """Draw, answer and write."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else QUESTIONS
    text = page(results(count, sys.stderr.write), count)
    sys.stdout.write(text)
    if count >= QUESTIONS:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
