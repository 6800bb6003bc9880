"""Tables and pictures of a serving plan: its workers, limits and memory, what other workers would give, latencies by load, and roofs."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import Final

import numpy as np

from crossopt.crossflow.serving import workers
from crossopt.crossflow.serving.steps import Split, active_experts
from crossopt.instances.catalogue.engines import constants_of_engine, stored_in
from crossopt.instances.files.units import rounded_quantity
from crossopt.instances.serving.question import JOINT, Role, ServingQuestion, of_classes
from crossopt.instances.serving.workers import (
    UNITS,
    Offer,
    Shape,
    broken,
    drafts_of,
    kernels_of,
    latencies_at,
    network_of,
    priced,
    shapes_of,
    with_network,
)
from crossopt.reports.drawing.plots import Line, lines, points
from crossopt.reports.drawing.roofline import Mark, Roof, roofline
from crossopt.reports.drawing.svg import letter
from crossopt.reports.sheets.sheet import Breakdown, Column, Limit, Limits, Picture, Section, Table, amounts, names
from crossopt.solvers.serving.judge import ServingFigures, ServingPlan, brief_shape_text, shape_text, units_of_copy

USES: Final = tuple(workers.WorkerMemory.__dataclass_fields__)
"""Of the memory of a device."""
_ROWS = 12
"""Most rows of a frontier."""
_TENTHS: Final = 20
"""Tenths of the rate of a plan up to which its latencies are shown, where no limit breaks before."""


def sections_of(question: ServingQuestion, plan: ServingPlan, said: ServingFigures) -> tuple[Section, ...]:
    """Tables and pictures of a plan."""
    views = (frontier_section(question, plan), load_section(question, plan, said), roofline_section(question, plan))
    return (_workers(plan, said), _limits(question, said), *_memory(question, plan, said), *(view for view in views if view.parts))


def _workers(plan: ServingPlan, said: ServingFigures) -> Section:
    rows = list(zip(plan.workers, said.offers, strict=True))
    table = Table(
        (
            names("worker", (shape_text(copies.shape) for copies, _ in rows)),
            _counts("workers", [copies.count for copies, _ in rows]),
            _counts("devices each", [offer.devices for _, offer in rows]),
            Column("requests/s each", tuple(f"{o.rate / UNITS:.4g}" for _, o in rows), tuple(o.rate / UNITS for _, o in rows)),
            Column("TTFT", tuple(_time(o.ttft) for _, o in rows), tuple(o.ttft for _, o in rows), "TTFT in s"),
            Column("TPOT", tuple(_time(o.tpot) for _, o in rows), tuple(o.tpot for _, o in rows), "TPOT in s"),
        ),
        caption="Means with all slots in use, before queues",
    )
    devices = tuple((brief_shape_text(copies.shape), float(copies.count * offer.devices)) for copies, offer in rows)
    drawn = Breakdown("worker", devices, "ratio", f"Devices by kind of worker, {said.devices:,} in all.")
    return Section("Workers", (table, drawn) if len(rows) > 1 else (table,))


def _counts(head: str, values: list[int]) -> Column:
    return Column(head, tuple(f"{value:,}" for value in values), tuple(float(value) for value in values))


def _time(seconds: float) -> str:
    return rounded_quantity(seconds, "time", 4) if seconds else "-"


def _limits(question: ServingQuestion, said: ServingFigures) -> Section:
    rows = [
        Limit(name, used, limit, "time")
        for name, used, limit in (("TTFT", said.ttft, question.ttft), ("TPOT", said.tpot, question.tpot))
        if limit != float("inf")
    ]
    if question.model is not None:
        fullest = max(said.offers, key=lambda offer: offer.memory / max(question.kind_of(offer.shape.device).usable_memory, 1.0))
        rows.append(Limit("memory", fullest.memory, question.kind_of(fullest.shape.device).usable_memory, "bytes"))
    return Section("Limits", (Limits(tuple(rows)),) if rows else ())


def _memory(question: ServingQuestion, plan: ServingPlan, said: ServingFigures) -> tuple[Section, ...]:
    """A section for each worker, whose title names it."""
    if question.model is None:
        return ()
    sections = []
    for copies, offer in zip(plan.workers, said.offers, strict=True):
        kind = question.kind_of(copies.shape.device)
        whole = float(kind.hardware.dram.capacity)
        uses = [(name, getattr(offer, name)) for name in USES]
        uses.append(("kept back by the engine", whole - kind.usable_memory))
        title = f"Memory of a device: {brief_shape_text(copies.shape)}{f' on {kind.name}' if copies.shape.device else ''}"
        sections.append(Section(title, (Breakdown("use", tuple(uses), "bytes", "", whole),)))
    return tuple(sections)


def frontier_section(question: ServingQuestion, plan: ServingPlan) -> Section:
    """Output tokens a second of a user against those of a device: workers that no other beats in both; empty for several classes."""
    if question.model is None or len(question.classes) > 1 or question.output == 1:
        return Section("", ())
    chosen = {copies.shape for copies in plan.workers}
    found, beside = _frontier(with_network(question, chosen), chosen)
    if len(found) > _ROWS:
        places = {round(index * (len(found) - 1) / (_ROWS - 1)) for index in range(_ROWS)}
        found = [point for index, point in enumerate(found) if index in places or point[2].shape in chosen]
    rows = [*found, *beside]
    table = Table(
        (
            names("worker", (f"{shape_text(offer.shape)}{' (the plan)' if offer.shape in chosen else ''}" for _, _, offer in rows)),
            amounts("tokens/s a user", [user for user, _, _ in rows], "{:.4g}".format),
            amounts("tokens/s a device", [device for _, device, _ in rows], "{:.4g}".format),
            names("TPOT limit", (_limit_text(question, offer) for _, _, offer in rows)),
        ),
        caption="Means with all slots in use, before queues; decode workers with their share of the best prefill workers; not full: with "
        "fewer requests in flight than slots",
    )
    if not found:
        return Section("", ())
    pairs, axes = [point[:2] for point in found], ("tokens/s a user", "tokens/s a device")
    ends = " to ".join(f"{user:.4g} a user and {device:.4g} a device" for user, device in (pairs[0], pairs[-1]))
    caption = "Numbers are the rows of the table. Workers to the left of the line and below it are worse than one of them in both."
    picture = Picture(lambda titles: points(titles, pairs, axes), "", caption, described=f"From {ends}.", zooms=False)
    return Section("Throughput of a user against that of a device", (picture, table))


def _limit_text(question: ServingQuestion, offer: Offer) -> str:
    """Whether a worker keeps the limit of TPOT, as plans are judged: perhaps with fewer requests in flight than it has slots."""
    if "tpot" in broken(question, offer):
        return "broken"
    return "kept" if offer.tpot <= question.tpot else "kept, not full"


_Point = tuple[float, float, Offer]


def _frontier(question: ServingQuestion, chosen: Collection[Shape]) -> tuple[list[_Point], list[_Point]]:
    """Tokens a second of a user and of a device, quickest for the user first, and those of chosen workers that another one beats; limits of
    memory and first tokens hold."""
    offers = [offer for offer in priced(question, shapes_of(question)) if set(broken(question, offer)) <= {"tpot"}]
    prefill = max((_each(offer) for offer in offers if offer.shape.role == "prefill"), default=0.0)
    points = list[_Point]()
    for offer in offers:
        own = _each(offer)
        if offer.shape.role == "decode":
            own = own * prefill / (own + prefill) if prefill else 0.0
        if offer.shape.role != "prefill" and own and offer.tpot:
            points.append((1.0 / offer.tpot, own * question.output, offer))
    found, beside, best = list[_Point](), list[_Point](), 0.0
    for point in sorted(points, key=lambda point: (-point[0], -point[1])):
        if point[1] > best:
            found.append(point)
            best = point[1]
        elif point[2].shape in chosen:
            beside.append(point)
    return found, beside


def _each(offer: Offer) -> float:
    """Requests a second and device."""
    return offer.rate / UNITS / offer.devices


@dataclass(frozen=True, slots=True)
class _Stream:
    """Copies of one shape, and the requests a second of each at the rate of the plan."""

    role: Role
    offer: Offer
    copies: int
    rate: float


def load_section(question: ServingQuestion, plan: ServingPlan, said: ServingFigures) -> Section:
    """Latencies of the plan at tenths of its rate, by the formulas of queues, up to the first that breaks a limit, and before queues
    without end; the median only where it mostly differs from the other percentile."""
    if question.model is None:
        return Section("", ())
    endless = max(said.loads) >= 1.0 and (question.level == "mean" or question.ttft == inf)
    level, streams = "p95" if question.level == "mean" else question.level, _streams(question, plan, said)
    rows = list[tuple[float, tuple[float, float], tuple[float, float]]]()
    for tenth in range(1, 10 if endless else _TENTHS + 1):
        median, beyond = (_latencies(streams, at, tenth / 10.0) for at in ("p50", level))
        if not all(map(isfinite, beyond)):
            break
        rows.append((said.rate * tenth / 10.0, median, beyond))
        if beyond[0] > question.ttft or beyond[1] > question.tpot:
            break
    shown = [index for index in range(2) if any(row[2][index] for row in rows)]
    limits, title = ("TTFT", "TPOT"), "Latency against load"
    columns = [amounts("requests/s", [row[0] for row in rows], "{:.4g}".format)]
    columns.append(amounts("of the rate", [row[0] / said.rate for row in rows], "{:.0%}".format))
    spread = [2 * sum(row[1][index] < row[2][index] for row in rows) > len(rows) for index in range(2)]
    for index in shown:
        for at, values in (("p50", [row[1][index] for row in rows]), (level, [row[2][index] for row in rows]))[not spread[index] :]:
            columns.append(amounts(f"{limits[index]} {at}", values, lambda value: rounded_quantity(value, "time", 3), "s"))
    kept = [[limits[index] for index, most in enumerate((question.ttft, question.tpot)) if row[2][index] > most] for row in rows]
    columns.append(names("limits", (f"{' and '.join(broken_ones)} broken" if broken_ones else "kept" for broken_ones in kept)))
    caption = f"By the formulas of queues, not the replay, with the requests in flight at each load; the plan's rate is {said.rate:.4g}/s"
    caption += ", with all slots in use, as limits hold for means" if question.level == "mean" else ""
    caption += ", at which queues grow without end" if endless else ""
    caption += "".join(f"; {limits[index]} has the same median where few requests wait" for index in shown if not spread[index])
    pictures = [
        _load_picture(limits[index], level, [(rate, p50[index] if spread[index] else 0.0, p95[index]) for rate, p50, p95 in rows], most)
        for index, most in enumerate((question.ttft, question.tpot))
        if index in shown
    ]
    return Section(title, (*pictures, Table(tuple(columns), caption=caption)) if rows else ())


def _streams(question: ServingQuestion, plan: ServingPlan, said: ServingFigures) -> list[_Stream]:
    """Copies of each shape take their share of what their part of a pool serves."""
    found = list[_Stream]()
    for label in dict.fromkeys(copies.shape.classes for copies in plan.workers):
        pool = of_classes(question, label.split(JOINT)) if label else question
        own = [(copies, offer) for copies, offer in zip(plan.workers, said.offers, strict=True) if copies.shape.classes == label]
        each = [units_of_copy(pool, offer, copies.count) for copies, offer in own]
        totals: dict[Role, int] = {}
        for (copies, _), units in zip(own, each, strict=True):
            totals[copies.shape.role] = totals.get(copies.shape.role, 0) + copies.count * units
        reached = min(totals.values())
        for (copies, offer), units in zip(own, each, strict=True):
            role = copies.shape.role
            found.append(_Stream(role, offer, copies.count, units / UNITS * (reached / totals[role])))
    return found


def _latencies(streams: Sequence[_Stream], level: str, part: float) -> tuple[float, float]:
    """Seconds to the first token, with the wait for a slot to decode, and per output token with the requests in flight at that load, of the
    slowest copies."""
    first, slot, token = 0.0, 0.0, 0.0
    for stream in streams:
        own, token_time = latencies_at(level, stream.offer, stream.copies, stream.rate * part)
        first, slot = (first, max(slot, own)) if stream.role == "decode" else (max(first, own), slot)
        token = max(token, token_time)
    return first + slot, token


def _load_picture(name: str, level: str, rows: Sequence[tuple[float, float, float]], limit: float) -> Picture:
    """One latency by the rate, beside its limit."""
    both = [(label, tuple(row[index] for row in rows)) for index, label in ((1, "p50"), (2, level))]
    curves = [Line(label, values, (False,) * len(rows)) for label, values in both if any(values)]
    curves += [Line("limit", (limit,) * len(rows), (False,) * len(rows))] if limit < inf else []
    values = [value * 1e3 for curve in curves for value in curve.values if value]
    scaled = [replace(curve, values=tuple(None if not value else value * 1e3 for value in curve.values)) for curve in curves]
    places, ends = [f"{row[0]:.3g}" for row in rows], (min(values), max(values))
    text = "; ".join(f"{curve.label} {', '.join('-' if value is None else f'{value:.4g}' for value in curve.values)}" for curve in scaled)
    axes = ("requests a second", f"{name} in ms")
    return Picture(
        lambda titles: lines(titles, places, scaled, axes, ends), "", "", title=f"{name} against load", described=f"{text} ms.", zooms=False
    )


def roofline_section(question: ServingQuestion, plan: ServingPlan) -> Section:
    """Prefill and decode of each worker under the peak and the memory of its device; products of weights alone, without attention."""
    if question.model is None or len(question.classes) > 1:
        return Section("", ())
    rows = [row for copies in plan.workers for row in _phases(question, copies.shape)]
    hardware = network_of(question, plan.workers[0].shape)[1]
    peak, bandwidth = max(row[5] for row in rows), float(hardware.dram.bandwidth)
    marks = [
        Mark(index, name.startswith("decode"), flops / seconds, flops / moved, flops / moved, f"{letter(index)}  {name}")
        for index, (name, flops, moved, seconds, _, _) in enumerate(rows)
    ]
    roofs = [Roof(f"memory {bandwidth / 1e12:.3g} TB/s", bandwidth, "memory")], [Roof(f"peak {peak / 1e12:,.4g} TFLOP/s", peak, "peak")]
    summary = ", ".join(f"{name}: {flops / seconds / own:.0%} of the peak" for name, flops, _, seconds, _, own in rows)
    picture = Picture(
        lambda titles: roofline(titles, marks, *roofs), "", "Round marks are prefill, square ones decode.", described=f"{summary}."
    )
    table = Table(
        (
            names("phase", (f"{letter(index)}  {row[0]}" for index, row in enumerate(rows))),
            amounts("time", [row[3] for row in rows], lambda value: f"{value * 1e3:.4g} ms", "s"),
            amounts("FLOPs a byte", [row[1] / row[2] for row in rows], "{:,.3g}".format),
            Column(
                "of the peak", tuple(f"{row[1] / row[3] / row[5]:.0%}" for row in rows), tuple(row[1] / row[3] / row[5] for row in rows)
            ),
            Column(
                "of the memory", tuple(f"{row[2] / row[3] / row[4]:.0%}" for row in rows), tuple(row[2] / row[3] / row[4] for row in rows)
            ),
        ),
        caption="One prompt, or a mean step of decode, on one device; products of the weights alone, without attention's FLOPs",
    )
    return Section("Roofline of prefill and decode", (picture, table))


def _phases(question: ServingQuestion, shape: Shape) -> list[tuple[str, float, float, float, float, float]]:
    """Name, FLOPs, bytes and seconds of each phase on one device, and its bandwidth and peak."""
    (model, hardware), file = network_of(question, shape), question.file
    kernels = kernels_of(question, shape)[0]
    stored = stored_in(shape.weights, shape.cache)
    one = question.classes[0]
    asked, split = (
        workers.Requests(one.input, one.output, one.cached),
        Split(*map(np.float64, (shape.tensor, shape.pipeline, shape.expert, shape.data))),
    )
    sequences = float(shape.data if shape.role == "prefill" else shape.batch)
    prompts = np.float64(shape.batch / shape.data if shape.role == "prefill" else 1.0)
    worker = workers.Worker(split, np.float64(sequences), float(shape.chunk), prompts, drafts_of(question, shape))
    times = workers.worker_times(model, kernels, constants_of_engine(file.engine), worker, asked, hardware)
    bandwidth, peak = float(hardware.dram.bandwidth), float(hardware.throughput) * kernels.form.pace
    whole = replace(split, tensor=np.float64(1.0))
    values = float(workers.streaming_floor(model, whole, workers.Bytes(1.0, 0.0), hardware)) * bandwidth - model.vocabulary * model.hidden
    ranks = shape.tensor * shape.pipeline
    least = float(workers.streaming_floor(model, split, stored, hardware)) * bandwidth / shape.pipeline
    every, cached = float(workers.weights_on_device(model, split, stored)), float(workers.cache_of_token(model, split, stored))

    def read(rows: float) -> float:
        """Bytes of weights: of experts those that so many tokens take."""
        if model.experts == 1:
            return every
        taken = float(active_experts(model, np.float64(rows))) - model.experts_per_token
        return least + max(every - least, 0.0) * max(taken, 0.0) / (model.experts - model.experts_per_token)

    found = list[tuple[str, float, float, float, float, float]]()
    if shape.role != "decode":
        tokens = (one.input - one.cached) * float(prompts) * shape.data
        moved = read(tokens) + tokens / shape.data * cached
        found.append(("prefill", 2.0 * values * tokens / ranks, moved, float(times.prefill), bandwidth, peak))
    if shape.role != "prefill" and one.output > 1:
        moved = read(sequences) + sequences / shape.data * (one.input + one.output / 2.0) * cached
        found.append(("decode", 2.0 * values * sequences / ranks, moved, float(times.decode), bandwidth, peak))
    return [(f"{row[0]}, tensor {shape.tensor}, batch {shape.batch}", *row[1:]) for row in found]
