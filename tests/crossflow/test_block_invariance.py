"""No formula looks at its block: what it gives for one plan on one chip never follows from the plans and chips beside it.

Formulas take numbers and arrays alike, entry by entry. One that asks an array for a figure of the whole of it (`any`, `size`, `max`, a sum)
may let entries depend on each other, if only in the last bit: each such place is listed with the reason why it does not.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.paths import ROOT

_OF_ARRAYS = frozenset(("any", "all", "size", "ndim", "shape", "max", "min", "sum", "mean", "prod", "cumsum", "dot", "matmul", "einsum"))
"""What numpy and its arrays tell of a whole array. Sums and products of matrices also round differently by length and layout."""
_NO_ARRAYS = frozenset(("link", "links[level]", "call"))
"""What has a size or a shape of its own."""
_LENGTHS = frozenset(f"len({name})" for name in ("plans", "heads", "rows", "columns", "hardware", "chips.alive"))
"""Lengths of blocks, on which a branch may depend."""
_ROOMS = ("crossflow", "crossflow/kernels", "crossflow/exchanges")
_FILES = ("solvers/codesign/pricing.py", "solvers/codesign/objective.py")

_UNUSED = "where the mask holds nowhere, `np.where` takes the other side everywhere"
_NOTHING = "where it holds nowhere, what is added is exactly zero"
_SETTLED = "what is settled stays as it is while others go on"
_EQUAL_INPUTS = "equal inputs are computed once; each entry follows from its own"
_REFUSED = "figures that are no numbers are refused, whichever"
_BY_QUESTION = "a number or an array by what the question opens, not by how many"
_LARGEST = "the largest number that keeps the power is one number, however it is found"
_ONE = "of a single design, or one operator"
ALLOWED: dict[str, str] = {
    "arrays.py: _codes: column.max(initial=0)": _EQUAL_INPUTS,
    "arrays.py: _codes: column.shape": _EQUAL_INPUTS,
    "arrays.py: distinct: columns[0].shape": _EQUAL_INPUTS,
    "arrays.py: distinct: key.max(initial=0)": _EQUAL_INPUTS,
    "arrays.py: distinct: number.max(initial=-1)": _EQUAL_INPUTS,
    "arrays.py: power: np.ndim(base)": "a number for numbers",
    "arrays.py: power: np.ndim(exponent)": "a number for numbers",
    "bill.py: step_items: np.ndim(needed.busy)": _ONE,
    "cost.py: enough_of: np.max(spare)": "terms beyond the spare bundles of a die add zero",
    "cost.py: good_share: np.any(made.needed)": _UNUSED,
    "dies.py: _counts_between: np.max(np.minimum(apart, _LOOKED_AT))": "further numbers of dies are none between",
    "dies.py: room_for: np.any(low < high)": _SETTLED,
    "generator.py: __post_init__: (np.isfinite(value) & np.greater_equal(value, 0.0)).all()": _REFUSED,
    "generator.py: __post_init__: np.all(np.asarray(self.dies) >= 1.0)": _REFUSED,
    "hardware.py: _usable: np.all(np.isfinite(value) & (np.greater(value, 0.0) if needed else np.greater_equal(value, 0.0)))": _REFUSED,
    "hardware.py: devices_in: value.size": "how many devices there are",
    "layout.py: lay_out: np.any(plans.expert_tensor)": _UNUSED,
    "memory.py: _device_memory: np.any(both)": _NOTHING,
    "memory.py: _layer_activations: np.any(np.greater_equal(sharding.recompute, PARTLY))": _UNUSED,
    "memory.py: device_trained: np.any(both)": _NOTHING,
    "memory.py: fullest_stage: np.max(candidate.total())": _ONE,
    "memory.py: host_memory: np.any(sharding.offload)": _NOTHING,
    "memory.py: kept_activations: np.any(np.greater_equal(sharding.recompute, PARTLY))": _UNUSED,
    "offload.py: host_traffic: np.any(sharding.offload)": _NOTHING,
    "pipeline.py: _split_passes: np.any(is_both_ways(terms.schedule))": _UNUSED,
    "pipeline.py: _split_passes: np.any(is_v(terms.schedule))": _UNUSED,
    "pipeline.py: _waits: np.any(share)": _NOTHING,
    "pipeline.py: bubble: np.any(terms.schedule)": _UNUSED,
    "pipeline.py: edges: np.any(is_both_ways(terms.schedule))": _UNUSED,
    "pipeline.py: exposed_exchange: np.any(terms.schedule)": _UNUSED,
    "pipeline.py: held_layers: np.any(is_both_ways(terms.schedule))": _UNUSED,
    "pipeline.py: slots: np.any(terms.schedule)": _UNUSED,
    "pipeline.py: unheld_time: np.any(terms.schedule)": _UNUSED,
    "pipeline.py: whole_backward: np.any(terms.schedule)": _UNUSED,
    "plan_rules.py: _end_rules: even.all()": "what is even needs no other rule",
    "roofline.py: _across: np.ndim(product.by_chance)": _UNUSED,
    "roofline.py: _different: (shapes[order[1:]] != shapes[order[:-1]]).any(axis=1)": _EQUAL_INPUTS,
    "roofline.py: _different: np.cumsum(new)": _EQUAL_INPUTS,
    "roofline.py: _places: np.ndim(hardware.open_bundles)": _UNUSED,
    "roofline.py: product_cost: np.ndim(product.launches)": "launches are a number where the network has no experts",
    "roofline.py: product_costs: different.shape": _EQUAL_INPUTS,
    "roofline.py: product_costs: np.any(one.by_chance)": _EQUAL_INPUTS,
    "roofline.py: product_costs: np.cumsum([0, *(len(side[0]) for side in sides)])": _EQUAL_INPUTS,
    "roofline.py: product_costs: side[0].ndim": _EQUAL_INPUTS,
    "roofline.py: reloads: room.size": _EQUAL_INPUTS,
    "roofline.py: reloads: rooms.size": _EQUAL_INPUTS,
    "sharding.py: candidates: np.any(both)": "the further stage is the last one again",
    "sharding.py: on_device: np.any(sharding.offload)": _UNUSED,
    "sharding.py: sharing: np.any(is_both_ways(self.schedule))": "times one",
    "transformer.py: _gather: np.ndim(value)": _BY_QUESTION,
    "transformer.py: _paired: np.any(both_ways)": _UNUSED,
    "transformer.py: _paired: np.any(plans.expert_exchange)": _UNUSED,
    "transformer.py: _recomputed: np.any(plans.recompute >= PARTLY)": _UNUSED,
    "transformer.py: parts: (plans.schedule == BOTH_WAYS).any()": "columns that no plan of the block reads are left out",
    "transformer.py: parts: plans.expert_exchange.any()": "columns that no plan of the block reads are left out",
    "transformer.py: parts: plans.schedule.any()": "columns that no plan of the block reads are left out",
    "transformer.py: price: found.step_time.shape": "the size of a block to fill",
    "voltage.py: _drive: (above := np.greater(_drawn(drive, threshold, leak), drawn)).any()": _LARGEST,
    "voltage.py: _drive: (below := np.less_equal(_drawn(np.nextafter(drive, np.inf), threshold, leak), drawn)).any()": _LARGEST,
    "voltage.py: _newton: (step < drive * _SETTLED).any()": "a start, from which `_drive` finds the same number",
    "kernels/mesh.py: _busiest: across.max()": _ONE,
    "kernels/mesh.py: _busiest: along_x.max()": _ONE,
    "kernels/mesh.py: _busiest: along_y.max()": _ONE,
    "kernels/mesh.py: _cover: change.cumsum(axis=-1)": _ONE,
    "kernels/mesh.py: _flows: sites.shape": _ONE,
    "kernels/mesh.py: link_loads: np.any(start[0] != end[0])": _ONE,
    "exchanges/context.py: around_attention: np.any(ranks.context > 1.0)": _NOTHING,
    "exchanges/dispatch.py: different: np.shape(units)": _EQUAL_INPUTS,
    "exchanges/dispatch.py: to_experts: np.any(ranks.expert_tensor)": _NOTHING,
    "exchanges/hiding.py: products_time: np.any(ranks.hides)": _UNUSED,
    "exchanges/replicas.py: _across_energy: np.any(sharding.shard)": _NOTHING,
    "exchanges/replicas.py: _across_time: np.any(sharding.shard)": _NOTHING,
    "exchanges/replicas.py: _copies: np.any(both)": _UNUSED,
    "exchanges/shared_links.py: taken: figure.ndim": _BY_QUESTION,
    "pricing.py: _kept_apart: len(plans)": _EQUAL_INPUTS,
    "pricing.py: _values_where_they_fit: chips.alive.any()": "rows and columns without a value are left out",
    "pricing.py: _values_where_they_fit: fits.any(axis=1)": "rows and columns without a value are left out",
    "pricing.py: _values_where_they_fit: len(chips.alive)": "rows and columns without a value are left out",
    "pricing.py: _values_where_they_fit: len(columns)": "rows and columns without a value are left out",
    "pricing.py: _values_where_they_fit: len(plans)": "rows and columns without a value are left out",
    "pricing.py: _values_where_they_fit: len(rows)": "rows and columns without a value are left out",
    "pricing.py: _values_where_they_fit: np.isfinite(figures).all()": "rows and columns without a value are left out",
    "pricing.py: host_memory_of: plans.offload.any()": _NOTHING,
    "pricing.py: least_memory_of: found.min(axis=1)": "the least over modes, for each plan its own",
    "pricing.py: least_memory_of: len(heads)": "the least over modes, for each plan its own",
    "pricing.py: memory_of: len(plans)": "no plans have no memory",
    "objective.py: combined: np.isfinite(found[finite]).all()": _REFUSED,
    "objective.py: values: prices.step_time.shape": "the shape to fill",
}
POWERS = {"dies.py", "hardware.py", "technology.py", "voltage.py", "kernels/lstm_operations.py"}
"""Where `**` is of constants, or of one device or technology, which are numbers for everybody; everywhere else `arrays.power` is."""


def test_formulas_ask_nothing_of_a_whole_block_but_where_it_changes_no_entry() -> None:
    found = {name for path in _files() for name in _asked(path)}
    assert found == {*ALLOWED}


def test_powers_are_taken_by_the_routine_that_gives_numbers_and_arrays_the_same_bits() -> None:
    found = {_name(path) for path in _files() for node in ast.walk(_tree(path)) if isinstance(node, ast.BinOp) and _differs(node.op)}
    assert found == POWERS


def _files() -> list[Path]:
    return [*(path for room in _ROOMS for path in sorted((ROOT / room).glob("*.py"))), *(ROOT / name for name in _FILES)]


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _name(path: Path) -> str:
    return path.name if path.parent.name in ("crossflow", "codesign") else f"{path.parent.name}/{path.name}"


def _differs(operator: ast.operator) -> bool:
    """What has other bits for numbers than for arrays, or by the layout of a matrix."""
    return isinstance(operator, ast.Pow | ast.MatMult)


def _asked(path: Path) -> Iterator[str]:
    """Each thing that a function asks of a whole array, and what it branches on by a length."""
    for function in ast.walk(_tree(path)):
        if isinstance(function, ast.FunctionDef):
            inner = {
                node for child in ast.walk(function) if isinstance(child, ast.FunctionDef) and child != function for node in ast.walk(child)
            }
            own = [node for node in ast.walk(function) if node not in inner]
            calls = {node.func: node for node in own if isinstance(node, ast.Call)}
            for node in own:
                if isinstance(node, ast.Attribute) and node.attr in _OF_ARRAYS and ast.unparse(node.value) not in _NO_ARRAYS:
                    yield f"{_name(path)}: {function.name}: {ast.unparse(calls.get(node, node))}"
                if isinstance(node, ast.If | ast.IfExp | ast.While):
                    for part in ast.walk(node.test):
                        if ast.unparse(part) in _LENGTHS:
                            yield f"{_name(path)}: {function.name}: {ast.unparse(part)}"
