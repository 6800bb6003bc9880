"""How often do rivals find what is proved? `python -m tests.benchmarks.drawn_questions [SHARE]` draws questions and writes the page, in
some half an hour of two cores; with a share of the questions, such as 0.05, it prints what they come to and writes nothing.

Each question is drawn from the distribution that `drawn` states, one family after the other: small ones, which are proved by enumeration,
and large ones, proved by boxes, whose trees are gone down again. Every engine then has the same seconds for it, of each of two budgets,
those that draw at random with some seeds. All seconds are those of this process and not of the clock on the wall, so that others on the
machine take nothing from anybody. A question is solved where the judge prices an engine's design at the very optimum, to the last bit.
"""

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from random import Random
from statistics import median
from typing import Any, Final

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_question
from crossopt.instances.codesign.space import combinations, hardware_points
from crossopt.instances.errors import RefusedError
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.checking import check_answer
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.family import solve
from tests.benchmarks.own_seconds import on_own_seconds
from tests.paths import ROOT
from tests.solvers.codesign.questions import TINY_FREE

PAGE: Final = ROOT / "reports" / "gallery" / "drawn-questions.md"
SEED, PROCESSES = 2026, 2
EXACT: Final = ("exhaustive", "boxes")
RULES: Final = ("recipes", "plan-only", "hardware-only")

SEARCHERS: Final = ("alternating", "random", "greedy", "local", "descent", "anneal", "genetic", "gradient", "tpe")
MODELS: Final = ("gpt3-1.3b", "gpt3-2.7b", "gpt3-6.7b", "gpt3-13b", "llama3.2-3b", "llama2-7b", "llama3-8b", "llama2-13b")
QUESTION: Final = """\
kind: codesign
workload: {{model: {model}, global_batch: {batch}, sequence: {sequence}, precision: bf16}}
cluster: {{devices: {devices}, devices_per_node: 8{network}}}
technology: accelerator-7nm
budget: {{die_area: {die} mm^2, package_area: 1700 mm^2, power: {power} W}}
choices:
  compute_area: {{from: 100 mm^2, to: 700 mm^2, step: {area} mm^2}}
  compute_power: {{from: 40 W, to: 280 W, step: {watts} W}}
  l2_area: {l2}
  hbm_stacks: {stacks}
  tensor: divisors
  pipeline: divisors
  interleave: [1, 2]
  sequence_parallel: [false, true]
{plans}
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


@dataclass(frozen=True, slots=True)
class Drawn:
    """How many questions of a size are drawn, and what is asked about them."""

    name: str
    count: int
    budgets: tuple[float, float]
    """Seconds of every engine."""
    seeds: tuple[int, ...]
    prover: str
    words: str
    choices: dict[str, tuple[str, ...]]
    """What is drawn from for each choice, with equal chances."""


SMALL: Final = Drawn(
    "small",
    200,
    (0.05, 0.2),
    (0, 1, 2),
    "exhaustive",
    "11 areas and nine powers of the cores, three areas of L2; three microbatches, recomputation or none, ZeRO-1 or none",
    {
        "area": ("60",),
        "watts": ("30",),
        "l2": ("[20 mm^2, 50 mm^2, 80 mm^2]",),
        "plans": ("  microbatch: [1, 2, 4]\n  recompute: [none, full]\n  zero: [0, 1]",),
    },
)
LARGE: Final = Drawn(
    "large",
    10,
    (1.0, 3.0),
    (0,),
    "boxes",
    "areas of the cores 10, 20 or 30 mm^2 apart, powers 5 or 10 W apart, ten areas of L2; five microbatches, three kinds of recomputation, "
    "four of sharing, overlap or none",
    {
        "area": ("10", "20", "30"),
        "watts": ("5", "10"),
        "l2": ("{from: 10 mm^2, to: 100 mm^2, step: 10 mm^2}",),
        "plans": ("  microbatch: [1, 2, 4, 8, 16]\n  recompute: [none, selective, full]\n  zero: [0, 1, 2, 3]\n  overlap: [none, both]",),
    },
)


@dataclass(slots=True)
class Tried:
    """What an engine came to on the questions of a family with one budget: how far above the optimum it is with each seed, infinite where
    it found no design; and whether it proved that."""

    above: list[tuple[float, ...]] = field(default_factory=list)
    proved: list[bool] = field(default_factory=list)

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
        words = f"{self.solved:.0%}" if least == most else f"{self.solved:.0%} ({least:.0%} to {most:.0%})"
        return f"{words}, proves {sum(self.proved) / len(self.proved):.0%}" if any(self.proved) else words

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
"""By budget, by family, by engine."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What came of one question."""

    designs: int
    proof: dict[str, float]
    """Seconds to the proof by each engine that was run to its end."""
    above: dict[tuple[float, str], tuple[float, ...]]
    """By budget and engine."""
    proved: dict[tuple[float, str], bool]


def drawn(of: Drawn, family: str, random: Random) -> str:
    """The text of a question: network, devices, batch, sequence, objective and budgets, each drawn with equal chances."""
    devices = random.choice((16, 32, 64))
    return QUESTION.format(
        model=random.choice(MODELS),
        devices=devices,
        batch=devices * random.choice((2, 4, 8, 16)),
        sequence=random.choice((1024, 2048, 4096)),
        objective=random.choice(("step_time", "energy_per_token")),
        **{name: random.choice(values) for name, values in (FAMILIES[family] | of.choices).items()},
    )


def tried(of: Drawn, number: int) -> Answers:
    """What every engine comes to on a question with each budget and seed; a question without a design is drawn again."""
    random, optimum, engines = Random(f"{SEED}, {of.name}, {number}"), None, _known()
    while optimum is None:
        text = drawn(of, family_of(number), random)
        instance = read_question({"text": text, "source": "drawn.yaml", "settings": []})
        optimum, seconds = _proved(instance, of.prover)
    proof = {of.prover: seconds}
    if of is SMALL:
        same, proof["boxes"] = _proved(instance, "boxes")
        if same != optimum:
            raise RuntimeError("two proofs are of different optima")
    above, proved = dict[tuple[float, str], tuple[float, ...]](), dict[tuple[float, str], bool]()
    for budget, engine in ((budget, engine) for budget in of.budgets for engine in engines):
        found = [solve(FAMILY, instance, engine, Limits(budget, seed=seed), unwatched) for seed in seeds_of(of, engine)]
        above[budget, engine] = tuple(distance(one.value, optimum) for one in found)
        proved[budget, engine] = found[0].proved
    return Answers(hardware_points(instance) * combinations(instance), proof, above, proved)


def _proved(instance: Instance, prover: str) -> tuple[float | None, float]:
    """The optimum, whose proof is carried out again, and the seconds to it; none where there is no design."""
    began = time.process_time()
    result = solve(FAMILY, instance, prover, Limits(), unwatched)
    seconds = time.process_time() - began
    report = check_answer(FAMILY, result, instance) if result.value is not None and prover != "exhaustive" else None
    if not result.proved or (report is not None and (report.told or not report.accepted)):
        raise RuntimeError(f"{prover} proves its answer")
    return result.value, seconds


def seeds_of(of: Drawn, engine: str) -> tuple[int, ...]:
    """All seeds for whoever draws, and one for whoever does not."""
    return of.seeds if engine in FAMILY.seeded else of.seeds[:1]


def distance(value: float | None, optimum: float) -> float:
    """How far a design is above the optimum; infinite where there is none."""
    return float("inf") if value is None else value / optimum - 1.0 if value != optimum else 0.0


def family_of(number: int) -> str:
    """The families take turns."""
    return list(FAMILIES)[number % len(FAMILIES)]


@cache
def _known() -> tuple[str, ...]:
    """The engines that are installed; each answers here before its seconds count, so that nothing is loaded in them."""
    found, question = list[str](), read_question({"text": TINY_FREE, "source": "tiny.yaml", "settings": []})
    for rival in (*EXACT, *RULES, *SEARCHERS):
        try:
            solve(FAMILY, question, rival, Limits(SMALL.budgets[-1]), unwatched)
        except RefusedError:
            continue
        found.append(rival)
    return tuple(found)


def answers(of: Drawn, count: int, tell: Callable[[str], object]) -> list[Answers]:
    """What every engine comes to on every question of a size."""
    found = list[Answers]()
    with ProcessPoolExecutor(PROCESSES, initializer=on_own_seconds) as pool:
        for one in pool.map(partial(tried, of), range(count)):
            found.append(one)
            tell(f"\r{len(found):,} of {count:,} {of.name} questions")
    tell("\n")
    return found


def results(of: Drawn, found: Sequence[Answers]) -> Results:
    """The same by budget, family and engine."""
    table: Results = {seconds: {family: {} for family in FAMILIES} for seconds in of.budgets}
    for number, one in enumerate(found):
        for (seconds, engine), above in one.above.items():
            tried = table[seconds][family_of(number)].setdefault(engine, Tried())
            tried.above.append(above)
            tried.proved.append(one.proved[seconds, engine])
    return table


def page(found: dict[str, list[Answers]]) -> str:
    """The tables, and how the questions were drawn."""
    sizes = [(of, found[of.name]) for of in (SMALL, LARGE)]
    return "\n".join([*_head(), *(line for of, some in sizes for line in _of_size(of, some))])


def _of_size(of: Drawn, found: Sequence[Answers]) -> list[str]:
    designs, table = sorted(one.designs for one in found), results(of, found)
    proofs = [f"{engine} {_range([one.proof[engine] for one in found])}" for engine in found[0].proof]
    seeds = "with each of three seeds where they draw" if len(of.seeds) > 1 else "with one seed"
    return [
        f"## {len(found):,} {of.name} questions",
        "",
        f"Of {designs[0]:.1e} to {designs[-1]:.1e} designs: {of.words}. Proved by {of.prover}; asked {seeds}.",
        f"Seconds to the proof, in the median and from the least to the most: {'; '.join(proofs)}.",
        "",
        *(line for seconds in of.budgets for line in _of_budget(table[seconds], seconds)),
    ]


def _range(seconds: Sequence[float]) -> str:
    return f"{median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"


def _of_budget(found: dict[str, dict[str, Tried]], seconds: float) -> list[str]:
    """What engines come to in so many seconds, over all questions and by family."""
    found = {family: of for family, of in found.items() if of}
    rivals = list(next(iter(found.values())))
    every = {
        rival: Tried(
            [one for family in found.values() for one in family[rival].above],
            [one for family in found.values() for one in family[rival].proved],
        )
        for rival in rivals
    }
    order = sorted(rivals, key=lambda rival: -every[rival].solved)
    rows = [[rival, every[rival].said, every[rival].at(0.5), every[rival].at(0.9), _worst(every[rival])] for rival in order]
    hardest = sorted(found, key=lambda family: found[family]["alternating"].solved)
    shares = [[family, *(f"{found[family][rival].said}, {found[family][rival].at(0.9)}" for rival in order[:6])] for family in hardest]
    worth = [[family, *_worth(found[family])] for family in hardest]
    return [
        f"### {seconds:g} s for each engine",
        "",
        *_table(["engine", "solves", "median above", "a tenth is above", "worst"], rows),
        "",
        f"#### Where choosing together pays in {seconds:g} s",
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


def _head() -> list[str]:
    ranges = [f"`{family}`: {', '.join(f'{name} {_said(values)}' for name, values in of.items())}" for family, of in FAMILIES.items()]
    return [
        "# Drawn questions",
        "",
        f"Questions drawn at random (seed {SEED}), each proved. Every engine had the same seconds of the processor for each, of two",
        "budgets; all that search begin with the best recipe's design. Of shares solved stand the middle seed's and, in brackets, the",
        "least and the greatest, of distances that of the seed in the middle, but of the worst. A question is solved where an engine's",
        "design is priced at the very optimum, whether it proves that or not; engines that prove stand beside those that do not. One",
        "without a design was drawn again. `python -m tests.benchmarks.drawn_questions` draws and answers all of them again. Not asked are",
        "`cma-es` and `bayesian`, which have hardly begun in such a time, and `expert`, whose chip is one of the recipes'. With more time",
        "every searcher solves more: the budgets are a choice, made so that they tell engines apart.",
        "",
        f"Networks are {', '.join(MODELS)}.",
        "There are 16, 32 or 64 devices, with 2, 4, 8 or 16 samples for each, of 1,024, 2,048 or 4,096 tokens; step time or energy of a",
        "token is least; chips of `accelerator-7nm` with the stacks below; every degree, two interleavings and sequence parallelism open.",
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
    share = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    text = page({of.name: answers(of, max(round(share * of.count), 1), sys.stderr.write) for of in (SMALL, LARGE)})
    sys.stdout.write(text)
    if share >= 1.0:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
