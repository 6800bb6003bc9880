"""What must hold between two questions: a limit at exactly a figure of the best answer keeps it, other units ask the same, and so on.

Each relation makes of a drawn question with its best answer another question whose least value is known. That is hunted as any other.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import yaml

from crossopt.instances.codesign.instance import MultiScaleQuestion, Portfolio
from crossopt.instances.errors import InstanceError
from crossopt.instances.files.units import DIMENSIONS, NUMBER, exact
from crossopt.instances.question import read, read_again
from crossopt.instances.traces.benchmark import mix_of
from crossopt.instances.traces.whatif import cost_of
from crossopt.solvers.answer import Result
from crossopt.solvers.codesign.objective import DIMENSIONS as OBJECTIVES
from crossopt.solvers.codesign.objective import figure_in
from tests.hunt.drawn import Drawn

Found = Result[Any, Any]
_ROUNDED = 2.0**-40
"""By which a limit in floats must be below a value to rule it out: areas, watts and sums of layers are off by up to 2^-46."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A figure of an answer that its question can limit."""

    key: str
    dimension: str
    """Empty for a number without a unit."""
    figure: float | Fraction
    """In SI units: exactly, or a float that stands for the decimal that is printed for it."""
    without: str = ""
    """A key that says the same in another way, and so is left out."""
    minimised: bool = False
    """Whether it is the value of the answer, so that less of it is no answer."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds of one kind of question."""

    limits: Callable[[Any, Found], Iterator[Limit]] = lambda question, result: iter(())
    unordered: tuple[str, ...] = ()
    """Keys of lists and mappings whose order means nothing, with `*` for any one key."""
    named: tuple[str, ...] = ()
    """Keys of mappings whose names the author chooses."""
    scaled: Callable[[Any], tuple[str, ...]] = lambda question: ()
    """Dimensions of which all quantities may be multiplied without another value."""
    dominated: Callable[[Any, Random], dict[str, Any] | None] = field(default=lambda tree, random: None)
    """The tree of the question with an option more that is nowhere better; None where there is none to add."""


# --- the same question, written otherwise --------------------------------------------------------------------------------------------


def again(drawn: Drawn, least: float, settings: Sequence[str] = (), change: Callable[[Any], Any] | None = None) -> Drawn | None:
    """The question with further settings, or with its text's tree changed; None where it is refused."""
    document = drawn.question.document
    text = document.get("text")
    try:
        source, settings = Path(document["source"]), (*document["settings"], *settings)
        if change is not None:
            text = yaml.serialize(change(yaml.compose(text or source.read_text(encoding="utf-8"))), allow_unicode=True)
        if document.get("text") is not None:
            question = read_again({**document, "text": text, "settings": settings}, drawn.kind)
        else:
            other = source.with_name("related.yaml")
            other.write_text(text or source.read_text(encoding="utf-8"), encoding="utf-8")
            question = read(other, settings)
    except InstanceError:
        return None
    return replace(drawn, question=question, least=least)


def settings_of(limit: Limit, figure: float | Fraction, random: Random) -> list[str]:
    """The limit, instead of one that says the same in another way."""
    return [*([f"{limit.without}=null"] if limit.without else []), f"{limit.key}={written(figure, limit.dimension, random)}"]


def written(value: float | Fraction, dimension: str, random: Random) -> str:
    """The figure in all its digits and one of the units of its dimension."""
    number = exact(value) if isinstance(value, float) else Fraction(value)
    if not dimension:
        return decimal(number)
    units = DIMENSIONS[dimension].units
    known = [unit for unit in units if _decimal(number / units[unit])]
    unit = random.choice([unit for unit in DIMENSIONS[dimension].shown if unit in known] or known)
    return f"{decimal(number / units[unit])} {unit}"


def _decimal(number: Fraction) -> bool:
    rest = number.denominator
    for factor in (2, 5):
        while rest % factor == 0:
            rest //= factor
    return rest == 1 and len(decimal(number)) < 60


def decimal(number: Fraction) -> str:
    """A fraction of a denominator of twos and fives in all its digits."""
    places = next((places for places in range(60) if (number * 10**places).denominator == 1), 60)
    digits = f"{int(number * 10**places):0{places + 1}d}"
    return f"{digits[:-places]}.{digits[-places:]}" if places else digits


# --- relations -----------------------------------------------------------------------------------------------------------------------


def at_a_figure(drawn: Drawn, result: Found, random: Random) -> Drawn | None:
    """A limit at exactly what the answer takes, in any unit: it keeps the answer."""
    limits = [*RULES[drawn.kind].limits(drawn.question, result)]
    chosen = random.sample(limits, min(len(limits), random.choice((1, 1, 2))))
    settings = [setting for limit in chosen for setting in settings_of(limit, limit.figure, random)]
    return again(drawn, drawn.least, settings) if settings else None


def below_the_value(drawn: Drawn, result: Found, random: Random) -> Drawn | None:
    """A limit just below the least value: there is no answer."""
    limits = [limit for limit in RULES[drawn.kind].limits(drawn.question, result) if limit.minimised and limit.figure > 0.0]
    if not limits:
        return None
    limit = random.choice(limits)
    below = limit.figure - 1 if isinstance(limit.figure, int) else float(limit.figure) * (1.0 - 2.0 * drawn.nearness - _ROUNDED)
    return again(drawn, inf, settings_of(limit, below, random))


def in_other_units(drawn: Drawn, result: Found, random: Random) -> Drawn | None:
    """Every quantity of the text in another unit of the same size."""
    del result
    return again(drawn, drawn.least, change=lambda root: _each_scalar(root, lambda text: _other_unit(text, random)))


def scaled(drawn: Drawn, result: Found, random: Random) -> Drawn | None:
    """All quantities of a dimension times the same decimal, such as a tenth: comparisons of them stay as they are."""
    del result
    dimensions, factor = RULES[drawn.kind].scaled(drawn.question), Fraction(random.choice(("0.1", "0.7", "1.3", "0.003", "1.1")))
    if not dimensions:
        return None
    units = DIMENSIONS[random.choice(dimensions)].units

    def times(text: str) -> str:
        found = _QUANTITY.fullmatch(text)
        return f"{decimal(Fraction(found[1]) * factor)} {found[2]}" if found and found[2] in units else text

    return again(drawn, drawn.least, change=lambda root: _each_scalar(root, times))


def in_another_order(drawn: Drawn, result: Found, random: Random) -> Drawn | None:
    """The keys of the question, and all whose order means nothing, in another order."""
    del result
    by_place = any(re.search(r"\.\d", setting) for setting in drawn.question.document["settings"])

    def shuffled(root: Any) -> Any:  # noqa: ANN401
        for node in (root, *(found for path in RULES[drawn.kind].unordered for found in _nodes_at(root, path.split(".")))):
            if not isinstance(node, yaml.ScalarNode) and not (by_place and isinstance(node, yaml.SequenceNode)):
                node.value = random.sample(node.value, len(node.value))
        return root

    return again(drawn, drawn.least, change=shuffled)


def renamed(drawn: Drawn, result: Found, random: Random) -> Drawn | None:
    """Other names for all that the author names."""
    del result
    rules = RULES[drawn.kind]
    if not rules.named or drawn.question.document["settings"]:
        return None

    def with_names(root: Any) -> Any:  # noqa: ANN401
        names = [key.value for path in rules.named for node in _nodes_at(root, path.split(".")) for key, _ in node.value]
        others = dict(zip(names, random.sample([f"{random.choice('xyz')}{place}" for place in range(len(names))], len(names)), strict=True))
        return _each_scalar(root, lambda text: others.get(text, text), keys=True)

    return again(drawn, drawn.least, change=with_names)


def with_a_dominated_option(drawn: Drawn, result: Found, random: Random) -> Drawn | None:
    """An option more that is nowhere better: it changes nothing."""
    del result
    rules, text = RULES[drawn.kind], drawn.question.document.get("text")
    tree = rules.dominated(yaml.safe_load(text), random) if text else None
    return tree and again(drawn, drawn.least, change=lambda _: yaml.compose(yaml.safe_dump(tree, sort_keys=False)))


RELATIONS = (at_a_figure, below_the_value, in_other_units, scaled, in_another_order, renamed, with_a_dominated_option)


def related(drawn: Drawn, result: Found, random: Random, most: int = 2) -> Iterator[tuple[str, Drawn]]:
    """Some questions that follow from one with its best answer, with the relation to it."""
    if (
        drawn.kind not in RULES
        or "source" not in drawn.question.document
        or result.value is None
        or result.value > drawn.least * (1.0 + drawn.nearness)
    ):
        return
    found = 0
    for relation in random.sample(RELATIONS, len(RELATIONS)):
        if found < most and (other := relation(drawn, result, random)):
            found += 1
            yield relation.__name__.replace("_", " "), other


# --- trees of YAML -------------------------------------------------------------------------------------------------------------------


def _nodes_at(node: Any, path: Sequence[str]) -> Iterator[Any]:  # noqa: ANN401
    """What stands at a path, which may lead to several."""
    if not path:
        yield node
    elif isinstance(node, yaml.MappingNode):
        for key, inner in node.value:
            if path[0] in ("*", key.value):
                yield from _nodes_at(inner, path[1:])
    elif isinstance(node, yaml.SequenceNode):
        for inner in node.value:
            yield from _nodes_at(inner, path[1:] if path[0] == "*" else path)


def _each_scalar(node: Any, change: Callable[[str], str], keys: bool = False) -> Any:  # noqa: ANN401
    """The tree with every text in it, or also every key, changed."""
    if isinstance(node, yaml.ScalarNode):
        node.value = change(node.value)
    elif isinstance(node, yaml.SequenceNode):
        for inner in node.value:
            _each_scalar(inner, change, keys)
    else:
        for key, inner in node.value:
            _each_scalar(inner, change, keys)
            key.value = change(key.value) if keys else key.value
    return node


_QUANTITY = re.compile(rf"({NUMBER}) +(\S+)")
_TABLES = [row.units for row in DIMENSIONS.values()]


def _other_unit(text: str, random: Random) -> str:
    """The same quantity in another unit; a text that is none, or may be one of several dimensions, as it is."""
    found = _QUANTITY.fullmatch(text)
    if found is None or len(rows := [units for units in _TABLES if found[2] in units]) != 1:
        return text
    value = Fraction(found[1].replace("_", "")) * rows[0][found[2]]
    others = [unit for unit, size in rows[0].items() if _decimal(value / size)]
    unit = random.choice([unit for unit in others if unit != found[2]] or [found[2]])
    return f"{decimal(value / rows[0][unit])} {unit}"


# --- kinds ---------------------------------------------------------------------------------------------------------------------------


def _of_designs(question: Any, result: Found) -> Iterator[Limit]:  # noqa: ANN401
    """Budgets of a device and of a step, and those of the run; of several workloads the greatest figure of all."""
    if isinstance(question, MultiScaleQuestion):
        scale = question.scales.index(result.answer.scale)
        question, minimised = question.parts[scale], question.objective if question.objective != "devices" else ""
    else:
        minimised = "" if isinstance(question, Portfolio) else question.objective
    parts = question.parts if isinstance(question, Portfolio) else (question,)
    evaluations = [share.evaluation for share in result.details.shares]
    needs = {"cost_per_token": parts[0].prices, "mean_step_time": parts[0].sites, "run_cost": parts[0].goal and parts[0].goal.rent}
    sets = any(part.others for part in parts)  # under which a limit holds too
    for name, dimension in OBJECTIVES.items():
        if needs.get(name, True) and (not sets or name in _OF_ALL_SETS):
            figures = [figure_in(part, evaluation, name) for part, evaluation in zip(parts, evaluations, strict=True)]
            yield Limit(f"budget.{name}", dimension, max(figures), minimised=name == minimised)
    by_slowest = "worst_step_time" in dict(parts[0].ceilings)  # which deadline and budget then limit, too
    if (goal := parts[0].goal) is not None and not sets and not by_slowest and len(parts) == 1:
        step = evaluations[0].step_time
        yield Limit("goal.deadline", "time", goal.seconds(step))
        if money := goal.money(step):
            yield Limit("goal.budget", "money", money)


_OF_ALL_SETS = ("worst_step_time", "die_area", "power")


def _of_memory(question: Any, result: Found) -> Iterator[Limit]:  # noqa: ANN401
    file, used = question.file, result.details
    if file.batch is None:
        beside = 0 if file.memory is None else int(file.memory) - question.budget
        without = "" if file.budget_share is None else "budget_share"
        yield Limit("budget" if file.memory is None else "memory", "bytes", int(used.peak) + beside, without, file.objective == "peak")
    if file.objective == "peak":
        yield Limit("most_extra_time", "", float(used.extra_time))


def _of_placements(question: Any, result: Found) -> Iterator[Limit]:  # noqa: ANN401
    del question
    yield Limit("memory", "bytes", max((load.memory for load in result.details.loads), default=0.0))


def _of_layers(question: Any, result: Found) -> Iterator[Limit]:  # noqa: ANN401
    for name, total in result.details.totals.items():
        yield Limit(f"budgets.{name}", _LAYERED[name], total, minimised=name == question.problem.figures[0])


_LAYERED = {"time": "time", "energy": "energy", "size": "bytes", "memory": "bytes", "bops": "", "quality": ""}


def _of_sharding(question: Any, result: Found) -> Iterator[Limit]:  # noqa: ANN401
    del question
    yield Limit("limit", "bytes", int(result.details.peak))


def _of_accelerators(question: Any, result: Found) -> Iterator[Limit]:  # noqa: ANN401
    file, figures = question.file, result.details
    if len(figures.networks) == 1:
        yield Limit("time_limit", "time", figures.seconds, minimised=file.objective == "time")
    yield Limit("technology.die_area" if file.technology else "chips.area", "area", figures.area, minimised=file.objective == "area")
    yield Limit("memory", "bytes", max(stage.memory for network in figures.networks for stage in network.stages))


def _of_fleets(question: Any, result: Found) -> Iterator[Limit]:  # noqa: ANN401
    for kind in question.kinds:
        yield Limit(f"devices.{kind}.available", "", result.answer.devices.get(kind, 0))


def _of_instances(question: Any, result: Found) -> Iterator[Limit]:  # noqa: ANN401
    file, used = question.file, result.details
    yield Limit("latency", "time", used.latency, minimised=file.objective == "latency")
    yield Limit("batch", "", used.batch)
    if file.idle_threads and file.sockets == 1:
        yield Limit("threads", "", used.threads)


def _of_networks(question: Any, result: Found) -> Iterator[Limit]:  # noqa: ANN401
    found = result.details
    if question.file.objective == "time":
        yield Limit("budget.total", "bandwidth", found.total)
        yield Limit("budget.cost", "money", found.cost)


def _of_chunks(question: Any, result: Found) -> Iterator[Limit]:  # noqa: ANN401
    del question
    yield Limit("deadline", "time", Fraction(int(result.value or 0), 10**9), minimised=True)


def _of_sends(question: Any, result: Found) -> Iterator[Limit]:  # noqa: ANN401
    del question
    yield Limit("deadline", "", int(result.value or 0), minimised=True)


def _of_changes(question: Any, result: Found) -> Iterator[Limit]:  # noqa: ANN401
    made = [change for change in question.file.changes if change.name in result.answer.changes]
    for amount, dimension in (("days", ""), ("money", "money"), ("memory", "bytes")):
        if (figure := sum((cost_of(change, amount) for change in made), Fraction(0))) >= 0:
            yield Limit(f"budgets.{amount}", dimension, figure)
    if question.file.objective == "time":
        yield Limit("target", "time", Fraction(int(result.value or 0), 10**9), minimised=True)


def _of_benchmarks(question: Any, result: Found) -> Iterator[Limit]:  # noqa: ANN401
    other = "runs" if question.file.objective == "kernels" else "kernels"
    yield Limit(other, "", getattr(result.details, other))
    if _decimal(mix := mix_of(question, result.answer.runs)):
        yield Limit("mix", "", mix)


def _of_tables(question: Any, result: Found) -> Iterator[Limit]:  # noqa: ANN401
    file, used = question.file, result.details
    if file.objective == "fewest_devices":
        yield Limit("within", "time", exact(used.slowest) / 1000)
    elif file.node is not None:
        yield Limit("node.budget", "money", used.system.price)
    elif not (file.cluster.reserve or file.cluster.dense or file.dense):
        for place, tier in enumerate(("hbm", "ddr", "ssd")):
            yield Limit(f"cluster.{tier}", "bytes", max(own[place] for own in used.memory))


def _of_serving(question: Any, result: Found) -> Iterator[Limit]:  # noqa: ANN401
    file, used = question.file, result.details
    for name in ("ttft", "tpot"):
        if 0.0 < getattr(used, name) < inf and (question.level == "mean" or getattr(file.limits, name)) and not question.log:
            yield Limit(f"limits.{name}", "time", getattr(used, name))
    if not question.chip:
        yield Limit("devices", "", used.devices)
    if file.requests is not None and file.objective in ("throughput", "devices"):
        yield Limit("requests.rate", "", used.rate)


def _worse_kind(tree: dict[str, Any], random: Random) -> dict[str, Any] | None:
    """A kind of device more that is slower and dearer than one of which there are any number."""
    free = [own for own in tree["devices"].values() if own.get("rates") and "price" in own and "available" not in own]
    if not free:
        return None
    own = random.choice(free)
    tree["devices"]["worse"] = {"price": own["price"] * 1.5, "rates": {name: rate / 2 for name, rate in own["rates"].items()}}
    return tree


def _worse_strategy(tree: dict[str, Any], random: Random) -> dict[str, Any] | None:
    """A strategy more of a layer that no link and no tie knows, with more of each figure than another one."""
    known = {name for row in (*(link["between"] for link in tree.get("links", ())), *tree.get("tied", ())) for name in row}
    free = sorted({*(tree.get("layers") or ())} - known)
    if not free:
        return None
    strategies = tree["layers"][random.choice(free)]["strategies"]
    strategies["worse"] = {name: _more(figure) for name, figure in strategies[random.choice([*strategies])].items()}
    return tree


def _more(figure: Any) -> Any:  # noqa: ANN401
    number, _, unit = str(figure).partition(" ")
    return f"{float(number) * 1.5} {unit}" if unit else float(number) * 1.5


RULES: dict[str, Rules] = {
    "codesign": Rules(_of_designs, ("choices", "choices.*", "cluster", "budget", "workload", "workload.transformer")),
    "memory": Rules(_of_memory, ("nodes.*", "nodes.*.after", "host"), ("nodes",)),
    "placement": Rules(
        _of_placements,
        ("graph", "graph.nodes", "graph.nodes.*", "graph.nodes.*.after"),
        ("graph.nodes",),
        lambda question: ("bytes",) if "nodes:" in question.document.get("text", "") else (),
    ),
    "layers": Rules(
        _of_layers,
        ("layers", "layers.*.strategies", "layers.*.strategies.*", "budgets", "links", "choices", "choices.*"),
        ("layers", "layers.*.strategies"),
        lambda question: tuple({"time", "energy", "bytes"} - {_LAYERED[question.problem.figures[0]]}) if question.graph is None else (),
        _worse_strategy,
    ),
    "sharding": Rules(_of_sharding, ("nodes", "nodes.*", "edges", "edges.*"), ("nodes",)),
    "fleet": Rules(_of_fleets, ("devices", "devices.*", "devices.*.rates", "classes"), ("devices", "classes"), dominated=_worse_kind),
    "instances": Rules(_of_instances, ("profile",)),
    "pipelines": Rules(unordered=("nodes", "links")),
    "network": Rules(_of_networks, ("workloads", "workloads.*.collectives", "dimensions.*", "dimensions.*.options")),
    "collective": Rules(_of_chunks, ("chunks", "dimensions.*")),
    "synthesis": Rules(_of_sends, ("links",)),
    "what-if": Rules(_of_changes, ("budgets",)),
    "benchmark": Rules(_of_benchmarks, ("totals",)),
    "embeddings": Rules(_of_tables, ("tables", "cluster", "choices", "choices.*", "node", "node.*")),
    "serving": Rules(_of_serving, ("workers", "choices", "choices.*", "limits"), ("workers",)),
    "accelerator": Rules(
        _of_accelerators, ("chips", "chips.*", "technology", "technology.*", "networks", "tensor", "recompute", "microbatch"), ("networks",)
    ),
}
"""By kind of question."""
