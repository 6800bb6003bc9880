"""How often do rivals find what is proved? `python -m tests.benchmarks.drawn_questions [QUESTIONS [SECONDS]]` draws questions and writes
the page.

Each question is drawn from the distribution that `drawn` states, one family after the other, and proved by enumeration. Every rival then
has the same seconds for it. All seconds are those of this process and not of the clock on the wall, so that others on the machine take
nothing from anybody. A question is solved where the judge prices a rival's design at the very optimum, to the last bit.
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
QUESTIONS, SECONDS, SEED, PROCESSES = 200, 0.2, 2026, 2
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
    """What a rival came to on the questions of a family: how far above the optimum it is; infinite where it found no design."""

    above: list[float] = field(default_factory=list)

    @property
    def solved(self) -> float:
        return sum(one == 0.0 for one in self.above) / len(self.above)

    def at(self, share: float) -> str:
        """The distance that this share of the questions keeps."""
        ordered = sorted(self.above)
        far = ordered[min(int(share * len(ordered)), len(ordered) - 1)]
        return "none" if far == float("inf") else f"{far:.2%}"


Results = dict[str, dict[str, Tried]]
"""By family, by rival."""


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


def tried(number: int, seconds: float) -> dict[str, float]:
    """How far above its optimum every rival is on a question; one without a design is drawn again."""
    random, optimum = Random(f"{SEED}, {number}"), None
    while optimum is None:
        text = drawn(family_of(number), random)
        instance = read_question({"text": text, "source": "drawn.yaml", "settings": []})
        result = solve(FAMILY, instance, "exhaustive", Limits(), unwatched)
        optimum = result.value
    if not result.proved:
        raise RuntimeError("an enumeration proves its answer")
    return {rival: above(instance, rival, seconds, optimum) for rival in _known()}


def family_of(number: int) -> str:
    """The families take turns."""
    return list(FAMILIES)[number % len(FAMILIES)]


def above(instance: Instance, rival: str, seconds: float, optimum: float) -> float:
    """How far the rival's design is above the optimum."""
    value = solve(FAMILY, instance, rival, Limits(seconds), unwatched).value
    return float("inf") if value is None else value / optimum - 1.0 if value != optimum else 0.0


@cache
def _known() -> tuple[str, ...]:
    """The rivals that are installed; each answers here before its seconds count, so that nothing is loaded in them."""
    found, question = list[str](), read_question({"text": TINY_FREE, "source": "tiny.yaml", "settings": []})
    for rival in (*RULES, *SEARCHERS):
        try:
            solve(FAMILY, question, rival, Limits(SECONDS), unwatched)
        except RefusedError:
            continue
        found.append(rival)
    return tuple(found)


def results(count: int, seconds: float, tell: Callable[[str], object]) -> Results:
    """What every rival comes to on every question."""
    found: Results = {family: {} for family in FAMILIES}
    with ProcessPoolExecutor(PROCESSES, initializer=on_own_seconds) as pool:
        for number, distances in enumerate(pool.map(tried, range(count), [seconds] * count)):
            for rival, distance in distances.items():
                found[family_of(number)].setdefault(rival, Tried()).above.append(distance)
            tell(f"\r{number + 1:,} of {count:,} questions")
    tell("\n")
    return found


def page(found: Results, count: int, seconds: float) -> str:
    """The tables, and how the questions were drawn."""
    rivals = list(next(iter(found.values())))
    every = {rival: Tried([one for family in found.values() for one in family[rival].above]) for rival in rivals}
    order = sorted(rivals, key=lambda rival: -every[rival].solved)
    rows = [[rival, f"{every[rival].solved:.0%}", every[rival].at(0.5), every[rival].at(0.9), _worst(every[rival])] for rival in order]
    hardest = sorted(found, key=lambda family: found[family]["alternating"].solved)
    shares = [
        [family, *(f"{found[family][rival].solved:.0%}, {found[family][rival].at(0.9)}" for rival in order[:6])] for family in hardest
    ]
    worth = [[family, *_worth(found[family])] for family in hardest]
    return "\n".join(
        [
            *_head(count, seconds),
            *_table(["rival", "solves", "median above", "a tenth is above", "worst"], rows),
            "",
            "## Where choosing together pays",
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
    )


def _head(count: int, seconds: float) -> list[str]:
    ranges = [f"`{family}`: {', '.join(f'{name} {_said(values)}' for name, values in of.items())}" for family, of in FAMILIES.items()]
    return [
        "# Drawn questions",
        "",
        f"{count:,} questions drawn at random (seed {SEED}), each proved by enumeration; every rival had {seconds:g} s of the processor",
        "for each, and was asked once (seed 0). A question is solved where the rival's design is priced at the very optimum. One",
        "without a design was drawn again. `python -m tests.benchmarks.drawn_questions` draws and answers all of them again. Not asked are",
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
    lost = sum(one == float("inf") for one in tried.above)
    return f"no design in {lost:,}" if lost else f"{max(tried.above):.2%}"


def _worth(family: dict[str, Tried]) -> list[str]:
    middles = {rival: median(family[rival].above) for rival in ("plan-only", "hardware-only", "alternating")}
    return [f"{middle:.2%}, {family[rival].at(0.9)}" if middle < float("inf") else "none" for rival, middle in middles.items()]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *(f"| {' | '.join(row)} |" for row in rows)]


def main() -> None:
    """Draw, answer and write."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else QUESTIONS
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else SECONDS
    text = page(results(count, seconds, sys.stderr.write), count, seconds)
    sys.stdout.write(text)
    if count >= QUESTIONS:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
