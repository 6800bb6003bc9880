"""The sheet of a serving plan: workers, latencies beside their limits, memory by use, what binds, and what to doubt."""

from dataclasses import replace

from crossopt.crossflow.serving.workers import WorkerMemory
from crossopt.instances.catalogue.engines import ENGINES, serving_kernels
from crossopt.instances.files.units import rounded_quantity
from crossopt.instances.serving.question import ServingQuestion
from crossopt.instances.serving.workers import UNITS, Offer, broken, floors, priced
from crossopt.reports.sheets.sheet import Breakdown, Column, Limit, Limits, Section, Sheet, Table, answer_sheet, baselines_in, names
from crossopt.solvers.answer import Result
from crossopt.solvers.serving.judge import Copies, ServingFigures, ServingPlan, shape_text
from crossopt.solvers.serving.replay import replay

_ASKS = {"throughput": "time between requests", "devices": "devices", "cost": "cost of a million output tokens"}
_SENTENCES = {
    "throughput": "Which copies of the model serve most requests a second within the limits?",
    "devices": "How few devices serve the requests within the limits, and as which copies?",
    "cost": "Which copies of the model make an output token cheapest within the limits?",
}
_USES = tuple(WorkerMemory.__dataclass_fields__)


def sheet(question: ServingQuestion, result: Result[ServingPlan, ServingFigures]) -> Sheet:
    """What is shown."""
    plan, said = result.answer, result.details
    sections: tuple[Section, ...] = ()
    if plan is not None and said is not None:
        sections = (_workers(plan, said), _limits(question, said), _memory(question, plan, said))
    return answer_sheet(
        result,
        "plan",
        _SENTENCES[question.file.objective],
        asks=_ASKS[question.file.objective],
        summary=" and ".join(copies_text(copies) for copies in plan.workers) if plan else "",
        answer_rows=_answer(question, plan, said) if plan is not None and said is not None else (),
        figures=_figures(question, said) if said is not None else (),
        meaning_rows=_meaning(question, plan, said) if plan is not None and said is not None else (),
        given=_given(question),
        sections=(*sections, baselines_in("plan", result, result.baselines)),
        notes=(*result.notes, *notes_of(question, result)),
        judged="times, memory and rate of every worker",
        next_step=f"`crossopt export RESULT --as {_launched(question)}` prints its command lines" if question.model and plan else "",
    )


def _launched(question: ServingQuestion) -> str:
    """The engine whose command lines launch a plan."""
    return "vllm" if question.file.engine == "eager" else question.file.engine


def copies_text(copies: Copies) -> str:
    """Workers of one shape in a few words."""
    return f"{copies.count:,} x {shape_text(copies.shape)}"


def _answer(question: ServingQuestion, plan: ServingPlan, said: ServingFigures) -> tuple[tuple[str, str], ...]:
    how = "prefill and decode together" if plan.workers[0].shape.role == "both" else "prefill and decode apart"
    rows = [("workers" if place == 0 else "", copies_text(copies)) for place, copies in enumerate(plan.workers)]
    asked = question.file.requests
    rate = f"{said.rate:.4g} requests/s of {asked.input:,} tokens in and {asked.output:,} out" + (
        f" ({asked.rate:g} are asked)" if asked.rate is not None else ""
    )
    return (*rows, ("mode", f"{how} on {said.devices:,} device{'s' * (said.devices != 1)}"), ("rate", rate))


def _figures(question: ServingQuestion, said: ServingFigures) -> tuple[tuple[str, str], ...]:
    rows = [("TTFT", _beside(said.ttft, question.ttft))]
    if said.tpot:
        rows.append(("TPOT", _beside(said.tpot, question.tpot)))
    return tuple(rows)


def _beside(seconds: float, limit: float) -> str:
    """A latency and its limit."""
    text = rounded_quantity(seconds, "time", 4)
    return text if limit == float("inf") else f"{text} of {rounded_quantity(limit, 'time', 4)}"


def _meaning(question: ServingQuestion, plan: ServingPlan, said: ServingFigures) -> tuple[tuple[str, str], ...]:
    """What the rates mean, what fills the memory, and what keeps the next larger batch out."""
    user = f", {said.tokens_per_user:,.4g} a user" if said.tokens_per_user else ""
    rows = [("tokens", f"{said.tokens_per_device:,.4g} output tokens/s a device{user}")]
    if said.cost is not None:
        rows.append(("cost", f"{said.cost:,.4g} USD for a million output tokens, at {question.rent:g} USD for a device and hour"))
    if question.model is not None:
        rows += [("memory", _memory_text(question, offer)) for offer in said.offers[-1:]]
        rows.append(("replay", _replay_text(question, plan, said)))
        rows.append(("binds", "; ".join(dict.fromkeys(binding(question, offer) for offer in said.offers))))
    return tuple(rows)


def _replay_text(question: ServingQuestion, plan: ServingPlan, said: ServingFigures) -> str:
    """Percentiles of requests that arrive at random."""
    found = replay(question, plan, said)
    if found is None:
        return ""
    first = " / ".join(rounded_quantity(seconds, "time", 3) for seconds in found.first)
    token = " / ".join(rounded_quantity(seconds, "time", 3) for seconds in found.token)
    at = f"{found.requests:,} random arrivals at {found.rate:.4g}/s"
    return f"{at}: TTFT p50/p95/p99 {first}{f'; TPOT {token}' if token else ''}"


def _memory_text(question: ServingQuestion, offer: Offer) -> str:
    parts = " + ".join(f"{name} {getattr(offer, name) / 1e9:,.4g}" for name in _USES)
    return f"{parts} = {offer.memory / 1e9:,.4g} GB of {question.usable_memory / 1e9:,.4g} GB that the engine may fill"


def binding(question: ServingQuestion, offer: Offer) -> str:
    """What keeps the next larger batch of this shape out."""
    options = question.options.prefill_batch if offer.shape.role == "prefill" else question.options.batch
    part = {"both": "", "prefill": "prefill: ", "decode": "decode: "}[offer.shape.role]
    larger = min((batch for batch in options if batch > offer.shape.batch), default=None)
    if larger is None:
        return f"{part}no larger batch is offered"
    after = priced(question, [replace(offer.shape, batch=larger)])[0]
    if faults := broken(question, after):
        return f"{part}batch {larger} breaks {' and '.join(faults)}"
    return f"{part}batch {larger} {'serves no more' if after.rate <= offer.rate else 'is possible, and not needed'}"


def notes_of(question: ServingQuestion, result: Result[ServingPlan, ServingFigures]) -> tuple[str, ...]:
    """What a reader has to know before trusting the figures."""
    if question.model is None or result.answer is None:
        return ()
    return (*_of_lengths(question), *_of_accuracy(question), *_of_queues(result), *_of_shapes(question, result.answer))


def _of_lengths(question: ServingQuestion) -> tuple[str, ...]:
    model, whole = question.model, question.file.requests.input + question.file.requests.output
    if model is None or question.file.context is not None or question.file.config is not None or whole <= model.sequence:
        return ()
    return (f"{whole:,} tokens exceed the {model.sequence:,} of its training: state the model's context to be sure",)


def _of_accuracy(question: ServingQuestion) -> tuple[str, ...]:
    entry, engine = ENGINES[question.file.engine], question.file.engine
    fitted = f"fitted to {entry.fitted}" if entry.fitted else "those of vLLM"
    accuracy = f"constants of {engine} are {fitted}; TPOT is off by {entry.errors}, TTFT by more"
    return (accuracy,)


def _of_queues(result: Result[ServingPlan, ServingFigures]) -> tuple[str, ...]:
    """What queues do to latencies."""
    plan, said = result.answer, result.details
    if plan is None or said is None:
        return ()
    rate = sum(copies.count * offer.rate for copies, offer in zip(plan.workers, said.offers, strict=True) if copies.shape.role == "prefill")
    if not rate:
        return ("latencies are means with all slots in use: requests that come in bursts wait longer",)
    busy = f"prefill workers are busy {said.rate * UNITS / rate:.0%} of the time at this rate"
    return (f"{busy}: the queue in front of them is not in TTFT (matching.ttft is a factor for it)",)


def _of_shapes(question: ServingQuestion, plan: ServingPlan) -> tuple[str, ...]:
    model, found = question.model, list[str]()
    if model is None or question.hardware is None:
        return ()
    for copies in plan.workers:
        shape = copies.shape
        if not model.latent and shape.tensor > model.attention_groups:
            heads = f"{model.attention_groups} heads of keys and values on {shape.tensor} ranks"
            found.append(f"{heads} are held {shape.tensor // model.attention_groups} times: more ranks save no cache")
        _, lent = serving_kernels(question.hardware.name, shape.weights, shape.cache, question.file.engine)
        if lent:
            found.append(f"kernels of {question.hardware.name} are taken over: {', '.join(lent)}")
        if shape.expert > 1:
            found.append("experts are taken at random: a router that prefers some makes their ranks slower")
    return tuple(dict.fromkeys(found))


def _given(question: ServingQuestion) -> tuple[tuple[str, str], ...]:
    file = question.file
    rows = [
        ("model", file.model or file.config or "workers are stated"),
        ("device", file.hardware or ""),
        ("devices", f"{file.devices:,}" if file.devices else ""),
        ("engine", file.engine if question.model is not None else ""),
        ("requests", f"{file.requests.input:,} tokens in, {file.requests.output:,} out"),
        ("rate", f"{file.requests.rate:g} a second" if file.requests.rate else ""),
        ("TTFT at most", rounded_quantity(question.ttft, "time", 4) if file.limits.ttft else ""),
        ("TPOT at most", rounded_quantity(question.tpot, "time", 4) if file.limits.tpot else ""),
    ]
    if floor := floors(question).get("tpot"):
        rows.append(("weights pass from memory in", rounded_quantity(floor, "time", 4)))
    return tuple(row for row in rows if row[1])


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
        )
    )
    return Section("Workers", (table,))


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
        rows.append(Limit("memory", max(offer.memory for offer in said.offers), question.usable_memory, "bytes"))
    return Section("Limits", (Limits(tuple(rows)),) if rows else ())


def _memory(question: ServingQuestion, plan: ServingPlan, said: ServingFigures) -> Section:
    if question.hardware is None:
        return Section("Memory of a device", ())
    parts = []
    whole = float(question.hardware.dram.capacity)
    for copies, offer in zip(plan.workers, said.offers, strict=True):
        uses = [(name, getattr(offer, name)) for name in _USES]
        uses.append(("kept back by the engine", whole - question.usable_memory))
        parts.append(Breakdown("use", tuple(uses), "bytes", shape_text(copies.shape), whole))
    return Section("Memory of a device", tuple(parts))
