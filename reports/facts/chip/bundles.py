"""What one multiprocessor more or less would change, and why: tiles of a product are dealt to multiprocessors in whole waves.

The design's step is priced once more with as many cores, registers and L1 as one more, or one fewer, brings with it at the same clock. The
waves are those of tiles of 256 x 128 results, ceil(tiles / multiprocessors), of the largest product of a layer in which they differ.
"""

from dataclasses import replace
from math import ceil

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.evaluate import Design, evaluate
from crossopt.crossflow.hardware import Hardware, Memory
from crossopt.crossflow.layout import lay_out
from crossopt.crossflow.plan import Plan, table
from crossopt.crossflow.projections import named_projections
from crossopt.crossflow.roofline import TILES, Product
from crossopt.crossflow.transformer import ranks
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.solvers.codesign.answer import ChosenDesign, candidate_in, design_of


def bundles_words(instance: Instance, design: ChosenDesign) -> str:
    """A sentence about the chip of a transformer's plan; nothing of a device that is given."""
    there = design_of(instance, candidate_in(instance, design))
    count = round(float(there.hardware.bundles))
    if not isinstance(instance.hardware, FreeHardware) or not isinstance(instance.workload, Transformer) or count < 2:
        return ""
    now = evaluate(instance.workload, there).step_time
    changed = [f"one {words} {_step(instance, there, by) / now - 1.0:+.2%}" for words, by in (("more", 1.0), ("fewer", -1.0))]
    return f"multiprocessors: {count}; at the same clock {', '.join(changed)} of the step{_waves(instance, there, count)}"


def _step(instance: Instance, there: Design, by: float) -> float:
    return float(evaluate(instance.workload, replace(there, hardware=_with(there.hardware, by))).step_time)


def _with(chip: Hardware, by: float) -> Hardware:
    """The chip with so many multiprocessors more, each with its cores, registers and L1."""
    share = 1.0 + by / chip.bundles
    return replace(
        chip,
        bundles=chip.bundles + by,
        throughput=chip.throughput * share,
        vector_throughput=chip.vector_throughput * share,
        registers=_times(chip.registers, share),
        l1=_times(chip.l1, share),
    )


def _times(memory: Memory, share: Real) -> Memory:
    return replace(memory, capacity=memory.capacity * share, bandwidth=memory.bandwidth * share)


def _waves(instance: Instance, there: Design, count: int) -> str:
    """How tiles fall on one fewer, so many, and one more: of the largest product whose waves differ between them."""
    if not isinstance(instance.workload, Transformer) or not isinstance(there.plan, Plan):
        return ""
    plans = table([there.plan])
    named = named_projections(instance.workload, ranks(plans, lay_out(plans, instance.cluster)))
    dealt = [(name, _tiles(product)) for name, product in sorted(named, key=lambda one: -_number(one[1].flops))]
    near = (count - 1, count, count + 1)
    for name, tiles in dealt:
        waves = [ceil(tiles / some) for some in near]
        if len(set(waves)) > 1:
            listed = ", ".join(f"{number:,} of {some}" for number, some in zip(waves, near, strict=True))
            return f"; {tiles:,} tiles of the {name} take whole waves, {listed}"
    return "; no product takes more waves, or fewer, with either"


def _tiles(product: Product) -> int:
    rows, columns, _ = TILES[0]
    return ceil(_number(product.rows) / rows) * ceil(_number(product.columns) / columns) * round(_number(product.count))


def _number(figure: Real) -> float:
    """Of one plan."""
    return float(np.max(figure))
