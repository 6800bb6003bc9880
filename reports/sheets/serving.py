"""The sheet of a serving plan: workers, latencies beside their limits, memory by use, what binds, and what to doubt."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite

from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.serving.flight import loads_of, most_within
from crossopt.instances.catalogue.engines import ENGINES, has_kernels
from crossopt.instances.files.units import rounded_quantity
from crossopt.instances.serving.question import DEFAULT_CACHE, JOINT, RequestClass, ServingQuestion, of_classes, with_chip
from crossopt.instances.serving.workers import UNITS, Offer, Shape, broken, floors, kernels_of, left_out, priced, refusal, with_network
from crossopt.reports.sheets.serving_views import USES, sections_of
from crossopt.reports.sheets.sheet import Pairs, Section, Sheet, answer_sheet, baselines_in, baselines_text
from crossopt.solvers.answer import Result
from crossopt.solvers.serving import judge
from crossopt.solvers.serving.replay import (
    Replayed,
    easier_replayed,
    fewest_replayed,
    judged_at,
    lower_replayed,
    percentiles,
    percents_of,
    replay,
)

_ASKS = {
    "die_area": "mm^2 of dies",
    "throughput": "time between requests",
    "devices": "devices",
    "cost": "cost of a million output tokens",
    "energy": "energy of an output token, devices at their power limit",
}
_SENTENCES = {
    "die_area": "Which chip and which copies on it serve the requests on the least area of silicon?",
    "throughput": "Which copies of the model serve most requests a second within the limits?",
    "devices": "How few devices serve the requests within the limits, and as which copies?",
    "cost": "Which copies of the model make an output token cheapest within the limits?",
    "energy": "Which copies of the model take the least energy for an output token within the limits?",
}


def sheet(question: ServingQuestion, result: Result[judge.ServingPlan, judge.ServingFigures]) -> Sheet:
    """What is shown."""
    plan, said = result.answer, result.details
    free = question.chip
    question = with_chip(question, plan.chip, plan.decode_chip) if plan is not None else question
    sections: tuple[Section, ...] = ()
    meaning: tuple[tuple[str, str], ...] = ()
    if plan is not None and said is not None:
        sections = sections_of(question, plan, said)
        meaning = _meaning(question, plan, said, replay(question, plan, said))
    made = answer_sheet(
        result,
        "plan",
        _SENTENCES[question.file.objective],
        asks=_ASKS[question.file.objective],
        summary=" and ".join(copies_text(copies) for copies in plan.workers) if plan else "",
        answer_rows=_answer(question, plan, said) if plan is not None and said is not None else (),
        figures=_figures(question, said) if said is not None else (),
        meaning_rows=meaning,
        given=(
            *_given(question),
            *((("chips", f"{free.space.points:,} of {free.name}"), *_offered_by(question)) if free is not None else ()),
        ),
        sections=(*sections, baselines_in("plan", result, result.baselines)),
        notes=(*result.notes, *notes_of(question, result), *(f"{label}: {text}" for label, text in meaning if label in _NOTED)),
        judged="times, memory and rate of every worker",
        next_step=f"export --as {_launched(question)}" if question.model and plan and free is None else "",
    )
    return replace(made, brief=lambda: tuple(_short(made, question)))


def _short(made: Sheet, question: ServingQuestion) -> Iterator[tuple[str, str]]:
    """The short answer with nothing said twice: requests a second, devices and money name the value, and rows what is noted, too."""
    rows, value, objective = made.brief(), made.shortly[:1], question.file.objective
    beside = f"; one in {value[0][1]}" if value and objective == "throughput" else ""
    twice = {*(value if objective in ("throughput", "devices", "cost") else ()), *(("note", f"{label}: {text}") for label, text in rows)}
    crowded = len(question.kinds) > 1 and sum(label in ("workers", "") for label, _ in rows) > 2
    for label, text in rows:
        if label == "assumed" and crowded:
            continue  # the long answer notes it; what each kind costs alone is the point
        if label == "next":
            yield label, text.replace(" for all tables", "").replace("`check` and `report`", "`check`")
        elif label == "baselines":
            yield label, baselines_text(made.beside, made.value, _BASELINES)
        elif (label, text) not in twice:
            yield label, f"{text.replace(_APART, 'apart')}{beside}" if label == "rate" else text


def _launched(question: ServingQuestion) -> str:
    """The engine whose command lines launch a plan."""
    return "vllm" if question.file.engine == "eager" else question.file.engine


def copies_text(copies: judge.Copies) -> str:
    """Workers of one shape in a few words."""
    return f"{copies.count:,} x {judge.shape_text(copies.shape)}"


def _answer(question: ServingQuestion, plan: judge.ServingPlan, said: judge.ServingFigures) -> tuple[tuple[str, str], ...]:
    rows = [("" if index else "workers", text) for index, text in enumerate(workers_texts(plan.workers))]
    chips = (("prefill chip" if plan.decode_chip else "chip", plan.chip), ("decode chip", plan.decode_chip))
    rows += [(label, ", ".join(f"{_chosen(name, value)} {_part(name)}" for name, value in own.items())) for label, own in chips if own]
    modes = {"together" if copies.shape.role == "both" else _APART for copies in plan.workers}
    how = modes.pop() if len(modes) == 1 else "together and apart"
    asked = question.rate
    rate = f"{said.rate:.4g} requests/s{f' of {asked:g}' if asked is not None else ''}"
    return (*rows, ("rate", f"{rate}, {how}, {_devices_text(question, plan, said)}"))


def workers_texts(workers: Sequence[judge.Copies]) -> list[str]:
    """A line for each shape; what more than two have in common is said once, and the last ones are left to the long answer."""
    if len({copies.shape.device for copies in workers}) == 1 and len(workers) > 2:
        workers = [replace(copies, shape=replace(copies.shape, device="")) for copies in workers]
    texts = [copies_text(copies) for copies in workers]
    formats = {f", {copies.shape.weights} weights, {copies.shape.cache} cache" for copies in workers}
    if len(formats) == 1 and len(workers) > 2 and not workers[0].shape.name:
        same = formats.pop()
        texts = [text.removesuffix(same) for text in texts]
        texts[0] += f" (all {same.removeprefix(', ')})"
    left = len(texts) - _LINES + 1
    return texts if left <= 1 else [*texts[:-left], f"and {left} more shapes"]


def _offered_by(question: ServingQuestion) -> tuple[tuple[str, str], ...]:
    return _offered(question.kinds[0].hardware) if question.kinds else ()


def _offered(hardware: Hardware) -> tuple[tuple[str, str], ...]:
    """What a chip that was chosen offers."""
    memory = f"{float(hardware.dram.capacity) / 1e9:,.4g} GB at {float(hardware.dram.bandwidth) / 1e12:,.3g} TB/s"
    links = " and ".join(f"{float(link.bandwidth) / 1e9:,.4g} GB/s" for link in hardware.links)
    return (
        ("throughput in 16 bits", f"{float(hardware.throughput) / 1e12:,.4g} TFLOP/s"),
        ("memory of the chip", memory),
        ("links", links),
        ("die and power", f"{float(hardware.die_area) * 1e6:,.4g} mm^2, {float(hardware.power):,.4g} W"),
    )


def _chosen(name: str, value: float) -> str:
    """An option in its unit."""
    dimension = name.rpartition("_")[2]
    return rounded_quantity(value, dimension, 4) if dimension in ("area", "power") else f"{value:g}"


def _part(name: str) -> str:
    """A choice without its dimension."""
    return name.removesuffix("_area").replace("_", " ")


def _devices_text(question: ServingQuestion, plan: judge.ServingPlan, said: judge.ServingFigures) -> str:
    """Devices of each kind."""
    if len(question.kinds) < 2:
        return f"{said.devices:,} device{'s' * (said.devices != 1)}"
    used = {kind.name: 0 for kind in question.kinds}
    for copies, offer in zip(plan.workers, said.offers, strict=True):
        used[copies.shape.device] += copies.count * offer.devices
    return " and ".join(f"{count:,} {name}" for name, count in used.items() if count)


def _figures(question: ServingQuestion, said: judge.ServingFigures) -> tuple[tuple[str, str], ...]:
    """Both latencies beside their limits, on one line."""
    at = "" if question.level == "mean" else f" at {question.level}"
    at += f"{' and' if at else ' at'} {said.rate:.4g}/s" if question.rate else ""
    grows = judge.saturated(question, max(said.loads))
    first = f"TTFT {_beside(said.ttft, question.ttft)}{' + endless queues (limit it)' if grows else ''}"
    return (("latency", f"{first} · TPOT {_beside(said.tpot, question.tpot)}{at}" if said.tpot else f"{first}{at}"),)


def _beside(seconds: float, limit: float) -> str:
    """A latency and its limit."""
    text = rounded_quantity(seconds, "time", 4)
    return text if limit == float("inf") else f"{text} of {rounded_quantity(limit, 'time', 4)}"


_NOTED = ("not started", "beyond", "assumed", "tokens", "uncalibrated")
"""Rows of the short answer that the full one lists with its notes."""


def _meaning(question: ServingQuestion, plan: judge.ServingPlan, said: judge.ServingFigures, found: Replayed | None) -> Pairs:
    """What the rates mean, what fills the memory, what keeps the next larger batch out, and what must not be overlooked."""
    user = f", {said.tokens_per_user:,.4g} a user" if said.tokens_per_user else ""
    rows = [("tokens", f"{said.tokens_per_device:,.4g}/s a device{user}"), ("money", _money_text(question, said))]
    rows.append(("not started", "; ".join(dict.fromkeys(refusal(question, copies.shape) for copies in plan.workers))))
    if question.model is not None and found is not None:
        rows.append(("memory", _memory_text(question, said)))
        rows.append(("replay", _replay_text(question, found)))
        rows.append(("by replay", _replayed_text(question, plan, said)))
        rows.append(("in the log", _measured_text(question, found)))
        rows.append(("beyond", _beyond_text(question, plan, said, found)))
        rows.append(("binds", _fewer_text(question, plan, said) or _binds_text(question, said)))
        rows.append(("assumed", _assumed_text(question)))
        rows.append(("uncalibrated", _uncalibrated_text(question, plan)))
    return tuple(row for row in rows if row[1])


def _money_text(question: ServingQuestion, said: judge.ServingFigures) -> str:
    """Rent of the plan, and the cost of output tokens at its own rate and at the one that is asked for."""
    if said.cost is None or said.hourly is None:
        return ""
    text = f"{said.hourly:,.4g} USD/h, {said.cost:,.4g} a million output tokens"
    rate = question.rate
    return text if rate is None else f"{text}; {said.cost * said.rate / rate:,.4g} at {rate:g}/s"


def _beyond_text(question: ServingQuestion, plan: judge.ServingPlan, said: judge.ServingFigures, found: Replayed) -> str:
    """Limits that percentiles of the replay exceed, and a rate at which it keeps them; empty where they exceed none."""
    at, pairs = judged_at(question), (("TTFT", found.first, question.ttft), ("TPOT", found.token, question.tpot))
    level = f"p{percents_of(question)[at]}"
    beyond = [f"{name} {level} is {_beside(times[at], limit)}" for name, times, limit in pairs if times and times[at] > limit]
    if not beyond:
        return ""
    if question.level != "mean":
        lower = lower_replayed(question, plan, said, found.rate)
        room = f"; the replay keeps the limits at {lower:g}/s" if lower else ""
        return f"{' and '.join(beyond)}: queues are longer than priced{room}"
    return f"{' and '.join(beyond)}: limits hold for means alone (--at p95 leaves room)"


def _assumed_text(question: ServingQuestion) -> str:
    """Share of the prompts that is in a cache; formats that the question does not name, and the options that name them."""
    offered, choices, found = [kind.options for kind in question.kinds], question.file.choices, list[tuple[str, str]]()
    weights = dict.fromkeys(form for options in offered for form in options.weights)
    if not choices.weights and tuple(weights) != ("bf16",):
        named = " (the checkpoint's)" if question.stated in weights or (question.stated == "fp4" and "int4" in weights) else ""
        found.append((f"{' and '.join(weights)} weights{named}", "--weights"))
    if not choices.cache:
        found.append((f"{' and '.join(DEFAULT_CACHE)} cache", "--cache"))
    names, options = [", ".join(part) for part in zip(*found, strict=True)] or ["", ""]
    cached, prompts = (sum(share * getattr(own, name) for share, own in question.shares) for name in ("cached", "input"))
    if not cached:
        return f"{names}; quality not priced ({options})" if names else ""
    return f"prompts cached to {cached / prompts:.0%}{f'; {names}, quality not priced' if names else ''}"


def _uncalibrated_text(question: ServingQuestion, plan: judge.ServingPlan) -> str:
    """Devices of which no kernels were measured, and whose price theirs."""
    found: dict[str, str] = {}
    for shape in (copies.shape for copies in plan.workers):
        if not has_kernels(question.kind_of(shape.device).kernels):
            *most, last = dict.fromkeys(text.rpartition(" by ")[2] for text in _taken_over(question, shape))
            found[question.kind_of(shape.device).name] = f"{', '.join(most)} and {last}" if most else last
    return "; ".join(f"{gpu} has no measured kernels, takes {whose}'s" for gpu, whose in found.items())


def _replay_text(question: ServingQuestion, found: Replayed) -> str:
    """Percentiles of requests that arrive at random."""
    parts = [(name, times) for name, times in (("TTFT", found.first), ("TPOT", found.token)) if times]
    levels = "/".join(f"p{percent}" for percent in percents_of(question))
    texts = [f"{name} {'/'.join(_milliseconds(seconds) for seconds in times)}" for name, times in parts]
    if found.whole:
        texts.append(f"whole {'/'.join(_milliseconds(seconds) for seconds in found.whole)}")
        return f"{levels} of {found.requests:,} requests of the log: {', '.join(texts)} ms"
    return f"{levels} at {found.rate:.4g}/s: {', '.join(texts)} ms"


def _replayed_text(question: ServingQuestion, plan: judge.ServingPlan, said: judge.ServingFigures) -> str:
    """Fewer devices with which the replay keeps the limits, where the fewest are asked for."""
    if question.file.objective != "devices" or question.level == "mean":
        return ""
    workers = fewest_replayed(question, plan, said)
    devices = sum(copies.count * offer.devices for copies, offer in zip(workers, said.offers, strict=True))
    if (other := easier_replayed(question, devices)) is not None:
        shapes = " and ".join(f"{copies.count:,} x {judge.brief_shape_text(copies.shape)}" for copies in other[0])
        return f"{other[1]:,} devices keep the limits, too ({shapes}); not proved"
    numbers = " and ".join(f"{copies.count:,} {copies.shape.role}".removesuffix(" both") for copies in workers)
    return f"{devices:,} devices keep the limits, too ({numbers} workers); not proved" if devices < said.devices else ""


def _measured_text(question: ServingQuestion, found: Replayed) -> str:
    """Times of the log that were measured, with the error of the replay."""
    log, parts = question.log[: found.requests], list[str]()
    if tokens := [item.token for item in log if item.token is not None and item.output > 1]:
        mean = sum(tokens) / len(tokens)
        parts.append(f"TPOT mean {_milliseconds(mean)} ms (replay {found.mean_token / mean - 1.0:+.1%})")
    for name, measured, times in (
        ("TTFT", [item.first for item in log if item.first is not None], found.first),
        ("whole", [item.whole for item in log if item.whole is not None], found.whole),
    ):
        if measured and times:
            percents, at = percents_of(question), judged_at(question)
            last = percentiles(measured, percents)[at]
            parts.append(f"{name} p{percents[at]} {_milliseconds(last)} ms ({times[at] / last - 1.0:+.1%})")
    return ", ".join(parts)


def _milliseconds(seconds: float) -> str:
    """Three digits."""
    return f"{seconds * 1e3:.0f}" if seconds >= 0.0995 else f"{seconds * 1e3:.3g}"


def _memory_text(question: ServingQuestion, said: judge.ServingFigures) -> str:
    """Uses of a device of the fullest worker, which is named where there are several."""
    offer = max(said.offers, key=lambda one: one.memory)
    parts = ", ".join(f"{name} {getattr(offer, name) / _GIB:,.3g}" for name in USES)
    sizes = f"{offer.memory / _GIB:,.3g} of {question.kind_of(offer.shape.device).usable_memory / _GIB:,.3g} GiB"
    roles = {other.shape.role for other in said.offers}
    which = offer.shape.role if len(roles) == len(said.offers) else judge.brief_shape_text(offer.shape)
    if len(said.offers) > 2:
        return f"{sizes} ({which})"
    return f"{sizes}{f' ({which})' if len(said.offers) > 1 else ''}: {parts}"


_GIB = 1 << 30
_LINES, _BASELINES = 4, 2
"""Of the short answer: lines of workers, and baselines."""
_APART = "prefill and decode apart"
_NEEDLESS = "is possible, and not needed"


def _fewer_text(question: ServingQuestion, plan: judge.ServingPlan, said: judge.ServingFigures) -> str:
    """What one worker fewer of each part serves, where that is too little for the rate that is asked for."""
    found = list[str]()
    for copies, offer in zip(plan.workers, said.offers, strict=True):
        shape, fewer = copies.shape, copies.count - 1
        alike = [other.shape.role for other in plan.workers if other.shape.classes == shape.classes]
        pool = of_classes(question, shape.classes.split(JOINT)) if shape.classes else question
        served = fewer * judge.units_of_copy(pool, offer, fewer) if fewer else 0
        if alike.count(shape.role) > 1 or served >= judge.needed_units(pool):
            return ""
        part = " ".join(word for word in (shape.role.replace("both", ""), shape.classes) if word)
        found.append(f"{served / UNITS:.4g}/s{f' ({part})' if part else ''}")
    return f"one worker fewer serves {', '.join(found)}"


def _binds_text(question: ServingQuestion, said: judge.ServingFigures) -> str:
    question = with_network(question, [offer.shape for offer in said.offers])
    binds = [text for offer in said.offers if not (text := binding(question, offer)).endswith(_NEEDLESS)]
    return "; ".join(dict.fromkeys(binds))


def binding(question: ServingQuestion, offer: Offer) -> str:
    """What keeps more requests in flight, or the next larger batch of this shape, out."""
    question = of_classes(question, offer.shape.classes.split(JOINT)) if offer.shape.classes else question
    options = question.kind_of(offer.shape.device).options
    batches = [offer.shape.data * item for item in options.prefill_batch] if offer.shape.role == "prefill" else options.batch
    part = {"both": "", "prefill": "prefill: ", "decode": "decode: "}[offer.shape.role]
    if offer.load and (most := most_within(loads_of(offer.load), question.tpot)) < offer.shape.batch:
        return f"{part}more than {most:,} in flight break tpot"
    larger = min((batch for batch in batches if batch > offer.shape.batch and batch % offer.shape.data == 0), default=None)
    if larger is None:
        return f"{part}no larger batch is offered"
    after = priced(question, [replace(offer.shape, batch=larger)])[0]
    if faults := broken(question, after):
        return f"{part}batch {larger} breaks {' and '.join(faults)}"
    return f"{part}batch {larger} {'serves no more' if after.rate <= offer.rate else _NEEDLESS}"


def notes_of(question: ServingQuestion, result: Result[judge.ServingPlan, judge.ServingFigures]) -> tuple[str, ...]:
    """What a reader has to know before trusting the figures."""
    if question.model is None or result.answer is None:
        return ()
    left = tuple(f"left out: {reason}" for reason in left_out(question))
    return (*_of_accuracy(question, result.answer), *_of_queues(question, result), *_of_shapes(question, result.answer), *left)


def _of_accuracy(question: ServingQuestion, plan: judge.ServingPlan) -> tuple[str, ...]:
    if _uncalibrated_text(question, plan):
        return ("how far TPOT is off without measured kernels is not known",)
    entry = ENGINES[question.file.engine]
    if question.model is not None and question.model.experts > 1:
        return (entry.with_experts,)
    narrow = any(copies.shape.weights == "fp4" for copies in plan.workers)
    return ("no dense run in 4 bits is known" if narrow else entry.dense,)


def _of_queues(question: ServingQuestion, result: Result[judge.ServingPlan, judge.ServingFigures]) -> tuple[str, ...]:
    """What queues do to latencies."""
    plan, said = result.answer, result.details
    if plan is None or said is None or question.level != "mean":
        return ()
    rate = sum(copies.count * offer.rate for copies, offer in zip(plan.workers, said.offers, strict=True) if copies.shape.role == "prefill")
    if not rate:
        return ("latencies are means with all slots in use: bursts wait longer (see replay)",)
    return (f"TTFT is without the queue of prefill workers, which are busy {said.rate * UNITS / rate:.0%} (see replay)",)


def _of_shapes(question: ServingQuestion, plan: judge.ServingPlan) -> tuple[str, ...]:
    model, found = question.model, list[str]()
    if model is None:
        return ()
    for copies in plan.workers:
        shape, gpu = copies.shape, question.kind_of(copies.shape.device).name
        if not model.latent and shape.tensor > model.attention_groups:
            heads = f"{model.attention_groups} heads of keys and values on {shape.tensor} ranks"
            found.append(f"{heads} are held {shape.tensor // model.attention_groups} times: more ranks save no cache")
        if lent := _taken_over(question, shape):
            found.append(f"kernels of {gpu} are taken over: {', '.join(lent)}")
        if shape.drafted and shape.role != "prefill":
            found.append("drafted tokens are accepted as often as stated, in all requests alike")
        if shape.expert > 1:
            found.append("experts are taken at random: a router that prefers some makes their ranks slower")
    return tuple(dict.fromkeys(found))


def _taken_over(question: ServingQuestion, shape: Shape) -> tuple[str, ...]:
    """Kernels of a worker that are taken over from other devices, without those that it does not run."""
    needless = ("experts",) * (question.model is not None and question.model.experts == 1) + ("all-reduces",) * (shape.tensor == 1)
    return tuple(text for text in kernels_of(question, shape)[1] if not text.startswith(needless))


def _given(question: ServingQuestion) -> tuple[tuple[str, str], ...]:
    file = question.file
    rows = [
        ("model", file.model or file.config or "workers are stated"),
        ("device" if len(question.kinds) < 2 else "devices of", " and ".join(kind.name for kind in question.kinds)),
        ("devices", f"{file.devices:,}" if file.devices else ""),
        ("engine", file.engine if question.model is not None else ""),
        ("constants", _fitted(question) if question.model is not None else ""),
        ("rent", _rents(question)),
        *((f"requests{f' of {item.name}' if item.name else ''}", _class_text(item)) for item in question.classes),
        ("rate", f"{question.rate:g} a second" if question.rate else ""),
        ("TTFT at most", rounded_quantity(question.ttft, "time", 4) if file.limits.ttft else ""),
        ("TPOT at most", rounded_quantity(question.tpot, "time", 4) if file.limits.tpot else ""),
    ]
    if floor := floors(question).get("tpot"):
        ranks = max(tensor for kind in question.kinds for tensor in kind.options.tensor)
        rows.append(("weights pass from memory in", f"{rounded_quantity(floor, 'time', 4)} at least, on up to {ranks} ranks"))
    return tuple(row for row in rows if row[1])


def _class_text(one: RequestClass) -> str:
    rate = f", {one.rate:g} a second" if one.name and one.rate else ""
    cached = f" ({one.cached:,} cached)" if one.cached else ""
    return f"{one.input:,} tokens in{cached}, {one.output:,} out{rate}"


def _rents(question: ServingQuestion) -> str:
    if len(question.kinds) < 2:
        return f"{question.rent:g} USD for a device and hour" if isfinite(question.rent) else ""
    return ", ".join(f"{kind.rent:g} USD for a {kind.name} and hour" for kind in question.kinds if isfinite(kind.rent))


def _fitted(question: ServingQuestion) -> str:
    entry = ENGINES[question.file.engine]
    return f"fitted to {entry.fitted}" if entry.fitted else "those of vLLM"
