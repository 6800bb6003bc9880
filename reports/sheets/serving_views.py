"""Further views of a serving plan: what other workers would give, and how far prefill and decode are from the device's roofs."""

from dataclasses import replace

import numpy as np

from crossopt.crossflow.serving.steps import Split, active_experts
from crossopt.crossflow.serving.workers import Bytes, Requests, Worker, cache_of_token, streaming_floor, weights_on_device, worker_times
from crossopt.instances.catalogue.engines import CACHE_BYTES, WEIGHT_BYTES, constants_of_engine, serving_kernels
from crossopt.instances.serving.question import ServingQuestion
from crossopt.instances.serving.workers import UNITS, Offer, Shape, broken, drafts_of, network_of, priced, shapes_of
from crossopt.reports.drawing.roofline import Mark, Roof, roofline
from crossopt.reports.drawing.svg import letter
from crossopt.reports.sheets.sheet import Column, Picture, Section, Table, amounts, names
from crossopt.solvers.serving.judge import ServingPlan, shape_text

_ROWS = 12
"""Most rows of a frontier."""


def frontier_section(question: ServingQuestion, plan: ServingPlan) -> Section:
    """Output tokens a second of a user against those of a device: workers that no other beats in both; empty for several classes."""
    if question.model is None or len(question.classes) > 1 or question.output == 1:
        return Section("", ())
    found, chosen = _frontier(question), {copies.shape for copies in plan.workers}
    if len(found) > _ROWS:
        places = {round(place * (len(found) - 1) / (_ROWS - 1)) for place in range(_ROWS)}
        found = [point for place, point in enumerate(found) if place in places or point[2] in chosen]
    table = Table(
        (
            names("worker", (f"{shape_text(shape)}{' (the plan)' if shape in chosen else ''}" for _, _, shape in found)),
            amounts("tokens/s a user", [user for user, _, _ in found], "{:.4g}".format),
            amounts("tokens/s a device", [device for _, device, _ in found], "{:.4g}".format),
            names("TPOT limit", ("kept" if 1.0 / user <= question.tpot else "broken" for user, _, _ in found)),
        ),
        caption="Means with all slots in use, before queues; decode workers with their share of the best prefill workers",
    )
    return Section("Throughput of a user against that of a device", (table,)) if found else Section("", ())


def _frontier(question: ServingQuestion) -> list[tuple[float, float, Shape]]:
    """Tokens a second of a user and of a device, quickest for the user first; limits of memory and first tokens hold."""
    offers = [offer for offer in priced(question, shapes_of(question)) if set(broken(question, offer)) <= {"tpot"}]
    prefill = max((_each(offer) for offer in offers if offer.shape.role == "prefill"), default=0.0)
    points = list[tuple[float, float, Shape]]()
    for offer in offers:
        own = _each(offer)
        if offer.shape.role == "decode":
            own = own * prefill / (own + prefill) if prefill else 0.0
        if offer.shape.role != "prefill" and own and offer.tpot:
            points.append((1.0 / offer.tpot, own * question.output, offer.shape))
    found, best = list[tuple[float, float, Shape]](), 0.0
    for point in sorted(points, key=lambda point: (-point[0], -point[1])):
        if point[1] > best:
            found.append(point)
            best = point[1]
    return found


def _each(offer: Offer) -> float:
    """Requests a second and device."""
    return offer.rate / UNITS / offer.devices


def roofline_section(question: ServingQuestion, plan: ServingPlan) -> Section:
    """Prefill and decode of each worker under the peak and the memory of its device; products of weights alone, without attention."""
    if question.model is None or len(question.classes) > 1:
        return Section("", ())
    rows = [row for copies in plan.workers for row in _phases(question, copies.shape)]
    hardware = network_of(question, plan.workers[0].shape)[1]
    peak, bandwidth = max(row[5] for row in rows), float(hardware.dram.bandwidth)
    marks = [
        Mark(place, name.startswith("decode"), flops / seconds, flops / moved, flops / moved, f"{letter(place)}  {name}")
        for place, (name, flops, moved, seconds, _, _) in enumerate(rows)
    ]
    roofs = [Roof(f"memory {bandwidth / 1e12:.3g} TB/s", bandwidth, "memory")], [Roof(f"peak {peak / 1e12:,.4g} TFLOP/s", peak, "peak")]
    summary = ", ".join(f"{name}: {flops / seconds / own:.0%} of the peak" for name, flops, _, seconds, _, own in rows)
    picture = Picture(
        lambda titles: roofline(titles, marks, *roofs), "", "Round marks are prefill, square ones decode.", described=f"{summary}."
    )
    table = Table(
        (
            names("phase", (f"{letter(place)}  {row[0]}" for place, row in enumerate(rows))),
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
    kernels, _ = serving_kernels(hardware.name, shape.weights, shape.cache, file.engine)
    stored = Bytes(WEIGHT_BYTES[shape.weights], CACHE_BYTES[shape.cache])
    one = question.classes[0]
    asked, split = (
        Requests(one.input, one.output, one.cached),
        Split(*map(np.float64, (shape.tensor, shape.pipeline, shape.expert, shape.data))),
    )
    sequences = float(shape.data if shape.role == "prefill" else shape.batch)
    prompts = np.float64(shape.batch / shape.data if shape.role == "prefill" else 1.0)
    worker = Worker(split, np.float64(sequences), float(shape.chunk), prompts, drafts_of(question, shape))
    times = worker_times(model, kernels, constants_of_engine(file.engine), worker, asked, hardware)
    bandwidth, peak = float(hardware.dram.bandwidth), float(hardware.throughput) * kernels.form.pace
    whole = replace(split, tensor=np.float64(1.0))
    values = float(streaming_floor(model, whole, Bytes(1.0, 0.0), hardware)) * bandwidth - model.vocabulary * model.hidden
    ranks = shape.tensor * shape.pipeline
    least = float(streaming_floor(model, split, stored, hardware)) * bandwidth / shape.pipeline
    every, cached = float(weights_on_device(model, split, stored)), float(cache_of_token(model, split, stored))

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
