"""Tables of the accuracy page about likely ranges: who is inside by constants that saw the source, and by constants that did not."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import comb

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.hardware import Hardware, under_all_sets
from crossopt.instances.catalogue.entries import OWN, StackEntry
from crossopt.instances.catalogue.registry import device
from crossopt.instances.measured.runs import Measured, Measurement, device_for
from crossopt.reports.sheets.accuracy import fitted_text
from crossopt.solvers.measured.accuracy import NOMINAL, fitted_to, likely, once, predictions, with_variants
from crossopt.solvers.measured.calibrate import STACK_CONSTANTS, by_source, folds, of_stacks, without
from crossopt.solvers.measured.fitting import fitted
from tests.benchmarks.rival_tables import NARROW, section, table_head, table_row

_STACKS = {("h100-sxm", "fsdp"): ("fsdp", "torchtitan"), ("gb200-nvl72", "megatron-core"): ("megatron-core",)}
"""Sets that were fitted to more sources than one, and the stacks whose runs they were fitted to."""
_CALIBRATED = "a100-80g"
EDITION = re.compile(r"( performance summary)? v?\d\d\.\d\d.*")


def range_table(*files: Measured) -> Iterator[str]:
    """How many runs of each source and device are inside their likely ranges, and on which side the others are; all editions together."""
    titles = ("device", "bits", "runs", "plans", "fitted", "in range", "by chance", "faster", "slower", "by constants alone")
    yield from table_head("source", *titles)
    rows = once([row for measured in files for row in measured.measurements])
    seconds, groups = predictions(rows, with_variants), dict[tuple[str, str, str], list[int]]()
    ranges = likely(rows, seconds)
    for place, row in enumerate(rows):
        if ranges[place] is not None:
            label = (EDITION.sub("", section(row)), row.gpu, "8 or 4" if row.workload.precision in NARROW else "16")
            groups.setdefault(label, []).append(place)
    groups["all", "", ""] = [place for places in groups.values() for place in places]
    for label, places in groups.items():
        own = [(rows[place].seconds, *found) for place in places if (found := ranges[place]) is not None]
        faster, slower = sum(time < low for time, low, _ in own), sum(time > high for time, _, high in own)
        alone = sum(_is_inside(rows[place], seconds[place]) for place in places)
        count, seen, different = len(places), sum(fitted_to(rows[place]) for place in places), plans([rows[place] for place in places])
        inside = (count - faster - slower) / count
        shares = (f"{inside:.0%}", f"{by_chance(inside, different):.0%}", f"{faster:,}", f"{slower:,}", f"{alone / count:.0%}")
        yield table_row(*label, f"{count:,}", f"{different:,}", fitted_text(seen, count), *shares)


def by_chance(inside: float, count: int) -> float:
    """How often a share of so many plans is as far from nine in ten or further, on the same side, where each is inside nine times in ten
    by itself (the binomial distribution)."""
    found = round(inside * count)
    among = range(found, count + 1) if inside >= NOMINAL else range(found + 1)
    return sum(comb(count, number) * NOMINAL**number * (1.0 - NOMINAL) ** (count - number) for number in among)


def plans(rows: Sequence[Measurement]) -> int:
    """Of runs those that differ in more than replicas and batch: the others err alike, and are hardly further evidence."""
    return len({(replace(row.workload, name="", global_batch=1), row.machine, replace(row.plan, data=1), row.stack) for row in rows})


def left_out_table(*files: Measured) -> Iterator[str]:
    """By constants alone: runs inside of each source to which a set was fitted, with the source seen and without."""
    yield from table_head("source", "set", "runs", "plans", "in range, seen", "left out", "faster", "slower")
    rows = once([row for measured in files for row in measured.measurements])
    yield from _calibrated([row for row in rows if row.gpu.startswith("a100")])
    for (gpu, stack), stacks in _STACKS.items():
        own = of_stacks([row for row in rows if row.gpu == gpu], stacks, "the files")
        yield from _of_set(own, device(gpu).stacks[stack], f"{gpu}, {stack}") if len({row.source for row in own}) > 1 else ()


def _calibrated(rows: Sequence[Measurement]) -> Iterator[str]:
    """As `calibrate` found it, which fits all three sets without each source."""
    if (fit := device(_CALIBRATED).calibration) is None:
        return
    for source in fit.rows:
        if own := [row for row in rows if row.source == source]:
            faster, slower = fit.left_out_below[source], fit.left_out_above[source]
            yield _left_out_row(own, _CALIBRATED, (1.0 - fit.below[source] - fit.above[source], 1.0 - faster - slower, faster, slower))


def _of_set(rows: Sequence[Measurement], entry: StackEntry, name: str) -> Iterator[str]:
    """The few constants of the set fitted anew without each source; its ranges are as wide as with it."""
    constants = tuple(one for one in STACK_CONSTANTS if one.name in entry.constants)
    masks = folds(rows, constants, by_source)
    for mask, point in zip(masks, fitted(rows, constants, without(rows, masks)), strict=True):
        own = [row for row, out in zip(rows, mask, strict=True) if out]
        without_it = dict(zip([one.name for one in constants], point.tolist(), strict=True))
        seen, unseen = (predictions(own, partial(_with, constants=kept)) for kept in (entry.constants, without_it))
        time = np.array([row.seconds for row in own])
        faster, slower = (float(side.mean()) for side in (time < unseen.min(axis=1), time > unseen.max(axis=1)))
        inside = sum(map(_is_inside, own, seen)) / len(own)
        yield _left_out_row(own, name, (inside, 1.0 - faster - slower, faster, slower))


def _left_out_row(rows: Sequence[Measurement], name: str, shares: Sequence[float]) -> str:
    return table_row(rows[0].source, name, f"{len(rows):,}", f"{plans(rows):,}", *(f"{share:.0%}" for share in shares))


def _with(run: Measurement, constants: dict[str, float]) -> Hardware:
    """The run's device under all of its sets, with these constants in place of the central ones, and the others changed as much."""
    hardware = device_for(replace(run, stack=OWN))
    shares = {name: value / getattr(hardware.efficiency, name) for name, value in constants.items()}
    central, *variants = (
        replace(one, **{name: share * getattr(one, name) for name, share in shares.items()})
        for one in (hardware.efficiency, *hardware.variants)
    )
    return under_all_sets(replace(hardware, efficiency=central, variants=tuple(variants), doubts=()))


def _is_inside(run: Measurement, seconds: Array) -> bool:
    return bool(seconds.min() <= run.seconds <= seconds.max())
