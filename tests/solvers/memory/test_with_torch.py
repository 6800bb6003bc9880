"""Schedules that PyTorch runs on the CPU: gradients have the bits of the plain run, and tensors in memory peak where the judge says."""

import importlib
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from crossopt.instances.files.written import Files
from crossopt.instances.memory.graph import MemoryGraph
from crossopt.instances.operators.graph_file import graph_text
from crossopt.instances.operators.torch_export import graph_of_module
from crossopt.instances.question import read_given
from crossopt.reports.launching.checkpointing import policy_text
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.family import solve
from crossopt.solvers.memory.family import FAMILY
from crossopt.solvers.memory.judge import Schedule, regions_of, replay
from tests.solvers.memory.drawn import question_of

torch = pytest.importorskip("torch")
functional: Any = importlib.import_module("torch.nn.functional")
checkpoint: Any = importlib.import_module("torch.utils.checkpoint").checkpoint
dispatch: Any = importlib.import_module("torch.utils._python_dispatch")
aten = torch.ops.aten

_ROWS, _WIDTH, _CLASSES = 24, 16, 10
_WIDE = (48, 64, 32)
"""Inner widths of the blocks."""


class Live(dispatch.TorchDispatchMode):  # type: ignore[misc]
    """Bytes of all tensors that were made since, and their most."""

    def __init__(self) -> None:
        super().__init__()
        self.tensors: list[Any] = []
        self.most = 0
        self.called: list[str] = []

    def __torch_dispatch__(self, call: Any, types: Any, given: Any = (), named: Any = None) -> Any:  # noqa: ANN401
        before = {tensor.untyped_storage()._cdata for tensor in (*given, *(named or {}).values()) if isinstance(tensor, torch.Tensor)}
        result = call(*given, **(named or {}))
        self.called.append(call.name().split("::")[-1].split(".")[0])
        made = [tensor for tensor in (result if isinstance(result, tuple) else (result,)) if isinstance(tensor, torch.Tensor)]
        self.tensors += [weakref.ref(tensor) for tensor in made if tensor.untyped_storage()._cdata not in before]
        self.most = max(self.most, self.now())
        return result

    def now(self) -> int:
        alive = [tensor for tensor in (made() for made in self.tensors) if tensor is not None]
        return sum({tensor.untyped_storage()._cdata: tensor.untyped_storage().nbytes() for tensor in alive}.values())


@dataclass(frozen=True)
class Operator:
    """A node with what it computes from the tensors of its inputs."""

    name: str
    time: int
    inputs: tuple[str, ...]
    run: Callable[..., tuple[Any, ...]]
    backward: bool = False


@cache
def parameters() -> dict[str, Any]:
    """Of blocks norm, wide product, GELU, narrow product and residual; and of the head."""
    torch.manual_seed(7)
    found = {"head": torch.randn(_CLASSES, _WIDTH), "head.bias": torch.randn(_CLASSES)}
    for number, wide in enumerate(_WIDE):
        found |= {f"{number}.scale": torch.randn(_WIDTH), f"{number}.shift": torch.randn(_WIDTH)}
        found |= {f"{number}.up": torch.randn(wide, _WIDTH), f"{number}.up.bias": torch.randn(wide)}
        found |= {f"{number}.down": torch.randn(_WIDTH, wide), f"{number}.down.bias": torch.randn(_WIDTH)}
    return found


@cache
def batch() -> tuple[Any, Any]:
    torch.manual_seed(8)
    return torch.randn(_ROWS, _WIDTH), torch.randint(_CLASSES, (_ROWS,))


def plain_gradients() -> dict[str, Any]:
    """By autograd."""
    own = {name: tensor.clone().requires_grad_() for name, tensor in parameters().items()}
    x, target = batch()
    x = x.clone()
    for number in range(len(_WIDE)):
        normed = functional.layer_norm(x, (_WIDTH,), own[f"{number}.scale"], own[f"{number}.shift"])
        wide = functional.gelu(functional.linear(normed, own[f"{number}.up"], own[f"{number}.up.bias"]))
        x = x + functional.linear(wide, own[f"{number}.down"], own[f"{number}.down.bias"])
    functional.cross_entropy(functional.linear(x, own["head"], own["head.bias"]), target).backward()
    return {name: tensor.grad for name, tensor in own.items()}


def operators(gradients: dict[str, Any]) -> Iterator[Operator]:
    """The step operator by operator, as autograd runs it; gradients of parameters go to memory that is there."""
    own, (data, target) = parameters(), batch()

    def product(name: str) -> Callable[..., tuple[Any, ...]]:
        return lambda x: (aten.addmm(own[f"{name}.bias"], x[0], own[name].t()),)

    def of_product(name: str) -> Callable[..., tuple[Any, ...]]:
        def run(gradient: Any, x: Any) -> tuple[Any, ...]:  # noqa: ANN401
            torch.mm(gradient[0].t(), x[0], out=gradients[name])
            torch.sum(gradient[0], 0, out=gradients[f"{name}.bias"])
            return (aten.mm(gradient[0], own[name]),)

        return run

    def norm(number: int) -> Callable[..., tuple[Any, ...]]:
        scale, shift = own[f"{number}.scale"], own[f"{number}.shift"]
        return lambda x: tuple(aten.native_layer_norm(x[0], [_WIDTH], scale, shift, 1e-5))

    def of_norm(number: int) -> Callable[..., tuple[Any, ...]]:
        def run(gradient: Any, x: Any, normed: Any) -> tuple[Any, ...]:  # noqa: ANN401
            scale, shift = own[f"{number}.scale"], own[f"{number}.shift"]
            found = aten.native_layer_norm_backward(gradient[0], x[0], [_WIDTH], normed[1], normed[2], scale, shift, [True] * 3)
            gradients[f"{number}.scale"].copy_(found[1])
            gradients[f"{number}.shift"].copy_(found[2])
            return (found[0],)

        return run

    def lost(scores: Any, loss: Any) -> tuple[Any, ...]:  # noqa: ANN401
        one = torch.ones_like(loss[0])
        by_scores = aten.nll_loss_backward(one, scores[0], target, None, 1, -100, loss[1])
        return (aten._log_softmax_backward_data(by_scores, scores[0], 1, torch.float32),)

    def added(left: Any, right: Any) -> tuple[Any, ...]:  # noqa: ANN401
        return (left[0] + right[0],)

    x, last = "input", len(_WIDE) - 1
    yield Operator(x, 2, (), lambda: (data.clone(),))
    for number, wide in enumerate(_WIDE):
        yield Operator(f"{number}.norm", 9, (x,), norm(number))
        yield Operator(f"{number}.up", wide * 7, (f"{number}.norm",), product(f"{number}.up"))
        yield Operator(f"{number}.gelu", wide, (f"{number}.up",), lambda x: (aten.gelu(x[0]),))
        yield Operator(f"{number}.down", wide * 7, (f"{number}.gelu",), product(f"{number}.down"))
        yield Operator(f"{number}.add", 3, (x, f"{number}.down"), added)
        x = f"{number}.add"
    yield Operator("logits", 40, (x,), product("head"))
    yield Operator("scores", 5, ("logits",), lambda x: (aten._log_softmax(x[0], 1, False),))
    yield Operator("loss", 2, ("scores",), lambda x: tuple(aten.nll_loss_forward(x[0], target, None, 1, -100)))
    yield Operator("d logits", 8, ("scores", "loss"), lost, backward=True)
    yield Operator(f"d {x}", 80, ("d logits", x), of_product("head"), backward=True)
    for number in range(last, -1, -1):
        wide, before = _WIDE[number], f"{number - 1}.add" if number else "input"
        yield Operator(f"d {number}.gelu", wide * 14, (f"d {number}.add", f"{number}.gelu"), of_product(f"{number}.down"), backward=True)
        by_gelu = lambda gradient, x: (aten.gelu_backward(gradient[0], x[0]),)  # noqa: E731
        yield Operator(f"d {number}.up", wide * 2, (f"d {number}.gelu", f"{number}.up"), by_gelu, backward=True)
        yield Operator(f"d {number}.norm", wide * 14, (f"d {number}.up", f"{number}.norm"), of_product(f"{number}.up"), backward=True)
        reads = (f"d {number}.norm", before, f"{number}.norm")
        yield Operator(f"d {number}.in", 12, reads, of_norm(number), backward=True)
        yield Operator(f"d {before}", 3, (f"d {number}.add", f"d {number}.in"), added, backward=True)


def run(order: tuple[int, ...], ends: tuple[int, ...]) -> tuple[dict[str, Any], list[tuple[int, int, int]]]:
    """Gradients of a schedule, and for each computation bytes before it, its output's, and the most while it runs."""
    gradients = {name: torch.full_like(tensor, float("nan")) for name, tensor in parameters().items()}
    nodes = list(operators(gradients))
    values, made = dict[str, tuple[int, Any]](), list[tuple[int, int, int]]()
    with torch.no_grad(), Live() as live:
        for event, node in enumerate(order):
            before = live.most = live.now()
            operator = nodes[node]
            output = operator.run(*(values[name][1] for name in operator.inputs))
            values[operator.name] = event, output
            made.append((before, sum(tensor.nbytes for tensor in output), live.most))
            del output
            for name in [name for name, (computed, _) in values.items() if ends[computed] == event]:
                del values[name]
        assert live.now() == 0
    return gradients, made


@cache
def graph() -> MemoryGraph:
    """Sizes and workspaces as they are when everything is run once."""
    nodes = list(operators({}))
    places = {node.name: place for place, node in enumerate(nodes)}
    inputs = tuple(tuple(sorted({places[name] for name in node.inputs})) for node in nodes)
    count = len(nodes)
    unsized = MemoryGraph(
        tuple(node.name for node in nodes), tuple(node.time for node in nodes), (0,) * count, (0,) * count,
        tuple(node.backward for node in nodes), inputs,
    )  # fmt: skip
    order = tuple(range(count))
    _, made = run(order, replay(unsized, order).ends)
    sizes = tuple(output for _, output, _ in made)
    workspaces = tuple(most - before - output for before, output, most in made)
    return MemoryGraph(unsized.names, unsized.times, sizes, workspaces, unsized.backward, inputs)


def test_the_plain_schedule_has_the_gradients_of_autograd_and_the_peak_that_is_counted() -> None:
    order = tuple(range(len(graph().names)))
    gradients, made = run(order, replay(graph(), order).ends)
    assert all(torch.equal(gradients[name], gradient) for name, gradient in plain_gradients().items())
    assert max(most for _, _, most in made) == graph().plain_peak
    assert max(graph().workspaces) > 0


@pytest.mark.parametrize("share", [0.95, 0.9, 0.8, 0.75, 0.7, 0.65])
def test_a_schedule_has_the_gradients_of_the_plain_run_and_its_peak_to_the_byte(share: float) -> None:
    budget = int(graph().plain_peak * share)
    result = solve(FAMILY, question_of(graph(), budget), "auto", Limits(20.0), unwatched)
    assert result.answer is not None
    order = result.answer.order
    found = replay(graph(), order)
    gradients, made = run(order, found.ends)
    assert len(order) > len(graph().names)
    assert tuple(most for _, _, most in made) == found.bytes_  # at each computation
    assert max(most for _, _, most in made) <= budget
    assert all(torch.equal(gradients[name], gradient) for name, gradient in plain_gradients().items())


def test_regions_of_checkpoints_are_a_schedule_that_runs() -> None:
    result = solve(FAMILY, question_of(graph(), int(graph().plain_peak * 0.7)), "auto", Limits(20.0), unwatched)
    assert result.answer is not None
    order = regions_of(graph(), result.answer.order).order
    found = replay(graph(), order)
    gradients, made = run(order, found.ends)
    assert tuple(most for _, _, most in made) == found.bytes_
    assert all(torch.equal(gradients[name], gradient) for name, gradient in plain_gradients().items())


def _chain() -> Any:  # noqa: ANN401
    torch.manual_seed(9)
    widths = (16, 64, 32, 64, 16)
    pairs = [
        module for one, other in pairwise(widths) for module in (torch.nn.Linear(one, other), torch.nn.LayerNorm(other), torch.nn.GELU())
    ]
    return torch.nn.Sequential(*pairs, torch.nn.Linear(16, 10))


@pytest.mark.parametrize("share", ["80 %", "65 %"])
def test_exported_policies_run_in_regions_of_a_network(share: str) -> None:
    """Each operator of a region that is not kept runs once more, and gradients have the bits of the plain run."""
    network, x = _chain(), torch.randn(32, 16)
    files = Files(Path(), {"graph.json": graph_text(graph_of_module(network, (x,)))})
    text = f"kind: memory\ngraph: graph.json\nhardware: a100-80g\nprecision: fp32\nbudget_share: {share}\n"
    question = read_given(text, "memory", files=files)
    result = solve(FAMILY, question, "auto", Limits(20.0), unwatched)
    assert isinstance(result.answer, Schedule)
    policy: dict[str, Any] = {}
    exec(policy_text(question, result), policy)  # noqa: S102
    regions = regions_of(question.graph, result.answer.order)
    assert len(policy["REGIONS"]) == len(regions.spans) > 0

    network(x).square().sum().backward()
    plain = [parameter.grad.clone() for parameter in network.parameters()]
    network.zero_grad()
    starts = {first: (number, end) for number, (first, end) in enumerate(regions.spans)}
    value, place = x, 0
    with Live() as live:
        while place < len(network):
            number, end = starts.get(place, (None, place + 1))
            part = network[place:end]
            value = part(value) if number is None else checkpoint(part, value, use_reentrant=False, context_fn=policy["contexts"](number))
            place = end
        forward = len(live.called)
        value.square().sum().backward()
    assert all(torch.equal(parameter.grad, gradient) for parameter, gradient in zip(network.parameters(), plain, strict=True))
    again = [call for call in live.called[forward:] if call in {"addmm", "gelu", "native_layer_norm"}]
    assert len(again) == len(regions.order) - len(question.graph.names)
