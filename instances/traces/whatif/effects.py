"""What each change of a question does to the graph of its trace."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from crossopt.crossflow.traces import transforms
from crossopt.crossflow.traces.graph import Graph
from crossopt.crossflow.traces.transforms import PRODUCTS, Effect, Transform
from crossopt.instances.traces.read_files import meant
from crossopt.instances.traces.whatif.section import ChangeSection

_NS = 1_000_000_000
_DEVICE = ("kernel", "copy", "collective")
_AMONG: Mapping[Transform, Sequence[str]] = {
    **dict.fromkeys(("scale", "remove", "cuda-graph"), _DEVICE),
    **dict.fromkeys(("bandwidth", "latency", "compress", "overlap"), ("collective",)),
    **dict.fromkeys(("amp", "fuse", "recompute"), ("kernel",)),
    "unwait": ("wait",),
    "cpu": (),
}
"""Kinds of operations among which each transform looks where nothing is said."""
Places = Mapping[str, list[int]]


def matched(graph: Graph, change: ChangeSection) -> dict[str, list[int]]:
    """Operations that the patterns of a change mean, by the key of the patterns."""
    patterns = change.pattern or (PRODUCTS if change.transform == "amp" else ("*",))
    found = {} if change.transform == "cpu" else {"pattern": meant(graph, patterns, change.kinds or _AMONG[change.transform])}
    found |= {"gradients": meant(graph, change.gradients, ("kernel",))} if change.transform == "overlap" else {}
    return found | ({"before": meant(graph, change.before, _DEVICE)} if change.transform == "recompute" else {})


def effect_of(graph: Graph, change: ChangeSection) -> Effect:
    """What a change does."""
    return _MADE[change.transform](graph, change, matched(graph, change))


def _ns(seconds: float) -> int:
    return round(Fraction(seconds) * _NS)


def _factor(change: ChangeSection) -> Fraction:
    return Fraction(1) if change.factor is None else change.factor


def _longest(change: ChangeSection) -> int:
    return transforms.LONGEST_GAP if change.longest_gap is None else _ns(change.longest_gap)


def _amp(graph: Graph, at: Places) -> Effect:
    products = set(at["pattern"])
    return transforms.amp(at["pattern"], [place for place in meant(graph, ("*",), ("kernel",)) if place not in products])


_MADE: Mapping[Transform, Callable[[Graph, ChangeSection, Places], Effect]] = {
    "scale": lambda _, change, at: transforms.scale(at["pattern"], _factor(change)),
    "amp": lambda graph, _, at: _amp(graph, at),
    "fuse": lambda graph, change, at: transforms.fuse(graph, at["pattern"], _factor(change)),
    "remove": lambda graph, _, at: transforms.remove(graph, at["pattern"]),
    "unwait": lambda graph, _, at: transforms.unwait(graph, at["pattern"]),
    "cpu": lambda graph, change, _: transforms.cpu(graph, _factor(change)),
    "cuda-graph": lambda graph, change, at: transforms.cuda_graph(graph, at["pattern"], _longest(change)),
    "bandwidth": lambda _, change, at: transforms.bandwidth(at["pattern"], change.times or Fraction(1), _ns(change.latency)),
    "latency": lambda _, change, at: transforms.less_latency(at["pattern"], _factor(change), _ns(change.latency)),
    "compress": lambda _, change, at: transforms.compress(at["pattern"], _factor(change), _ns(change.overhead)),
    "overlap": lambda graph, _, at: transforms.overlap(graph, at["pattern"], at["gradients"]),
    "recompute": lambda graph, _, at: transforms.recompute(graph, at["pattern"], at["before"]),
}
