"""How often do baselines find what is proved? `python -m tests.benchmarks.drawn_questions [SHARE]` draws questions and writes the page, in
some half an hour of two cores; with a share of the questions, such as 0.05, it prints what they come to and writes nothing.

Each question is drawn from the distribution that `drawn` states, one family after the other: small ones, which are proved by enumeration,
and large ones, proved by boxes, whose trees are gone down again. Every engine then has the same seconds for it, those that draw at random
with some seeds, and how long it took is told beside. All seconds are those of this process and not of the clock on the wall, so that others
on the machine take nothing from anybody. A question is solved where the judge prices an engine's design at the very optimum, to the last
bit.
"""

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from random import Random
from statistics import median
from typing import Final

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_question
from crossopt.instances.codesign.space import combinations, hardware_points
from crossopt.instances.errors import RefusedError
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.checking import check_answer
from crossopt.solvers.codesign.answer import DesignResult
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.family import solve
from tests.benchmarks.drawn_sizes import FAMILIES, LARGE, MODELS, SEED, SMALL, Drawn, drawn, family_of
from tests.benchmarks.own_seconds import on_own_seconds
from tests.paths import ROOT
from tests.solvers.codesign.questions import TINY_FREE

PAGE: Final = ROOT / "reports" / "gallery" / "drawn-questions.md"
PROCESSES: Final = 2
PATIENCE: Final = 30.0
"""Seconds after which nobody waits for a proof any longer."""
EXACT: Final = ("exhaustive", "boxes")
RULES: Final = ("recipes", "plan-only", "hardware-only")
SEARCHERS: Final = ("alternating", "random", "descent", "genetic", "gradient", "tpe")


@dataclass(slots=True)
class Tried:
    """What an engine came to on the questions of a family with one budget: how far above the optimum it is with each seed, infinite where
    it found no design; and whether it proved that."""

    above: list[tuple[float, ...]] = field(default_factory=list)
    proved: list[bool] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    """That it took on each question, the most of all seeds."""

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

    @property
    def within(self) -> str:
        """The distance that nine tenths of the questions keep."""
        return _distance(sorted(self.middle)[-(-9 * len(self.above) // 10) - 1])


def _distance(far: float) -> str:
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
    seconds: dict[tuple[float, str], float]
    """That it took, the most of all seeds."""


def tried(of: Drawn, number: int) -> Answers:
    """What every engine comes to on a question with each budget and seed; a question without a design is drawn again."""
    random, optimum, engines = Random(f"{SEED}, {of.name}, {number}"), None, _known()
    while optimum is None:
        text = drawn(of, family_of(number), random)
        instance = read_question({"text": text, "source": "drawn.yaml", "settings": []})
        optimum = _proved(instance, of.prover)
    proof = {engine: _seconds_to_proof(instance, engine, optimum) for engine in EXACT}
    answers = Answers(hardware_points(instance) * combinations(instance), proof, {}, {}, {})
    for budget, engine in ((budget, engine) for budget in of.budgets for engine in engines):
        found = [_timed(instance, engine, Limits(budget, seed=seed)) for seed in seeds_of(of, engine)]
        answers.above[budget, engine] = tuple(distance(one.value, optimum) for one, _ in found)
        answers.proved[budget, engine] = found[0][0].proved
        answers.seconds[budget, engine] = max(seconds for _, seconds in found)
    return answers


def _timed(instance: Instance, engine: str, limits: Limits) -> tuple[DesignResult, float]:
    """What an engine says, and the seconds that it took."""
    began = time.process_time()
    result = solve(FAMILY, instance, engine, limits, unwatched)
    return result, time.process_time() - began


def _seconds_to_proof(instance: Instance, engine: str, optimum: float) -> float:
    """Seconds in which an engine proves the optimum, infinite where it does not within `PATIENCE`. The question was answered before, so
    that what is worked out once for a question counts for nobody, as it does not for those that search."""
    result, seconds = _timed(instance, engine, Limits(PATIENCE))
    if result.proved and result.value != optimum:
        raise RuntimeError("two proofs are of different optima")
    return seconds if result.proved else float("inf")


def _proved(instance: Instance, prover: str) -> float | None:
    """The optimum, whose proof is carried out again; none where there is no design."""
    result = solve(FAMILY, instance, prover, Limits(), unwatched)
    report = check_answer(FAMILY, result, instance) if result.value is not None and prover != "exhaustive" else None
    if not result.proved or (report is not None and (report.unverified or not report.accepted)):
        raise RuntimeError(f"{prover} proves its answer")
    return result.value


def seeds_of(of: Drawn, engine: str) -> tuple[int, ...]:
    """All seeds for whoever draws, and one for whoever does not."""
    return of.seeds if engine in FAMILY.seeded else of.seeds[:1]


def distance(value: float | None, optimum: float) -> float:
    """How far a design is above the optimum; infinite where there is none."""
    return float("inf") if value is None else value / optimum - 1.0 if value != optimum else 0.0


@cache
def _known() -> tuple[str, ...]:
    """The engines that are installed; each answers here before its seconds count, so that nothing is loaded in them."""
    found, question = list[str](), read_question({"text": TINY_FREE, "source": "tiny.yaml", "settings": []})
    for baseline in (*EXACT, *RULES, *SEARCHERS):
        try:
            solve(FAMILY, question, baseline, Limits(SMALL.budgets[-1]), unwatched)
        except RefusedError:
            continue
        found.append(baseline)
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
            tried.seconds.append(one.seconds[seconds, engine])
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
        f"Seconds to the proof, in the median and from the least to the most, of a question that was answered before: {'; '.join(proofs)}.",
        "",
        *(line for seconds in of.budgets for line in _of_budget(table[seconds], seconds)),
    ]


def _range(seconds: Sequence[float]) -> str:
    middle, least, most = (
        f"more than {PATIENCE:g}" if one == float("inf") else f"{one:.2f}" for one in (median(seconds), min(seconds), max(seconds))
    )
    return f"{middle} s" if least == most else f"{middle} s ({least} to {most})"


def _of_budget(found: dict[str, dict[str, Tried]], seconds: float) -> list[str]:
    """What engines come to in so many seconds, over all questions and by family."""
    found = {family: of for family, of in found.items() if of}
    baselines = list(next(iter(found.values())))
    every = {
        baseline: Tried(
            [one for family in found.values() for one in family[baseline].above],
            [one for family in found.values() for one in family[baseline].proved],
            [one for family in found.values() for one in family[baseline].seconds],
        )
        for baseline in baselines
    }
    order = sorted(baselines, key=lambda baseline: -every[baseline].solved)
    rows = [
        [
            baseline,
            every[baseline].said,
            _distance(median(every[baseline].middle)),
            every[baseline].within,
            _worst(every[baseline]),
            _range(every[baseline].seconds),
        ]
        for baseline in order
    ]
    few = len(next(iter(every.values())).above) // len(found)
    hardest = sorted(found, key=lambda family: found[family]["alternating"].solved)
    shares = [
        [family, *(f"{found[family][baseline].said}, {found[family][baseline].within}" for baseline in order[:6])] for family in hardest
    ]
    worth = [[family, *_worth(found[family])] for family in hardest]
    return [
        f"### {seconds:g} s for each engine",
        "",
        *_table(["engine", "solves", "median above", "nine tenths are within", "worst", "took"], rows),
        "",
        f"#### Where choosing together pays in {seconds:g} s",
        "",
        f"Share solved of {few:,} question{'s' * (few != 1)} each, and what nine tenths are within, by family, where alternating solves",
        "least first:",
        "",
        *_table(["family", *order[:6]], shares),
        "",
        "Chip or plan chosen alone, and by turns: the median distance from the proved optimum, and what nine tenths are within.",
        "",
        *_table(["family", "plan alone, on the recipe's chip", "chip alone, for the recipe's plan", "alternating"], worth),
        "",
    ]


def _head() -> list[str]:
    ranges = [f"`{family}`: {', '.join(f'{name} {_said(values)}' for name, values in of.items())}" for family, of in FAMILIES.items()]
    return [
        "# Drawn questions",
        "",
        f"Questions drawn at random (seed {SEED}), each proved. Every engine was given the same seconds of the processor for each; what",
        "it took stands in the last column, of its slowest seed. All that search begin with the best recipe's design. Of shares solved",
        "stand the middle seed's and, in brackets, the least and the greatest, of distances that of the seed in the middle, but of the",
        "worst. A question is solved where an engine's design is priced at the very optimum, whether it proves that or not; engines that",
        "prove stand beside those that do not. One without a design was drawn again. `python -m tests.benchmarks.drawn_questions` draws",
        "and answers all of them again. Not asked are `nsga-ii`, `cma-es` and `bayesian`, which have hardly begun in such a time, and",
        "`expert`, whose chip is one of the recipes'. With more time every searcher solves more: the seconds are chosen so that they tell",
        "engines apart.",
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
    middles = {baseline: median(family[baseline].middle) for baseline in ("plan-only", "hardware-only", "alternating")}
    return [f"{middle:.2%}, {family[baseline].within}" if middle < float("inf") else "none" for baseline, middle in middles.items()]


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
