"""The commands that answer as functions, for programs and notebooks: the same questions, the same answers, no printing.

A question is a path, a name from `crossopt list instances`, the text of a YAML file, a mapping, or what `read` returned. `settings`
replace values, as `--set` does: `solve("tiny", settings={"tensor": 8, "cluster.devices": 16})`. An invalid question raises an
InstanceError with every fault.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from math import inf
from numbers import Integral, Real
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, NoReturn, overload

from crossopt.instances.codesign.instance import Instance, Portfolio
from crossopt.instances.codesign.question import key_compared, read_question, several_text
from crossopt.instances.errors import Fault, InstanceError, RefusedError
from crossopt.instances.files.saved import kind_of, write_atomically
from crossopt.instances.files.units import parse_quantity
from crossopt.instances.kinds import KINDS, is_result_file, kind_in, kind_of_file, question_path
from crossopt.instances.question import Question, kind_of_question, read_again, read_given
from crossopt.instances.question import read as read_file
from crossopt.reports.results import FOLLOWING, Answer, Evaluation
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.checking import Report
from crossopt.solvers.codesign.answer import ChosenDesign

if TYPE_CHECKING:
    from crossopt.reports.commands.networks import Network
    from crossopt.reports.comparisons import Comparison, DesignFront, Explanation, Sweep

# Messages name the arguments of a call where the command line names options.

_MODES = r"--(cheapest|fastest|fewest)\b"
_SHOWN_SETTING = re.compile(r"use --set, as in (\w+)=([^\s)]+)")
_GIVEN_SETTING = re.compile(r"--set '?([\w.\[\]-]+)=")
_ARGUMENTS = {"as": "form"}
"""Names of arguments that are not those of their options."""
_NAMES = (
    *_ARGUMENTS,
    *("base", "batch", "bandwidth", "budget", "context", "contiguous", "cpus", "deadline", "devices", "edge-unit", "engine", "formats"),
    *("gpus", "hardware", "losses", "memory", "microbatches", "minimize", "near", "peak", "points", "precision", "problem", "rent"),
    *("seeds", "set", "stack", "tie", "time-limit", "time-unit", "tokens", "workload"),
)
_OPTION = re.compile(rf"(?<![\w-])--({'|'.join(_NAMES)})(?![\w-])")
_COMMAND = re.compile(r"`[^`]*`")
"""What is to be typed into a shell stays as it is."""


def in_python(text: str, settings: str = "settings") -> str:
    """A message with the names of Python arguments; `settings` is what the argument is called that gives values of keys."""
    parts = _COMMAND.split(text)
    commands = [*_COMMAND.findall(text), ""]
    return "".join(f"{_renamed(part, settings)}{command}" for part, command in zip(parts, commands, strict=True))


def _renamed(text: str, settings: str) -> str:
    text = _SHOWN_SETTING.sub(rf'use {settings}={{"\1": \2}}', text)
    text = _GIVEN_SETTING.sub(rf"{settings} \1=", text)
    text = re.sub(_MODES, r'mode="\1"', text)
    return _OPTION.sub(lambda found: settings if found[1] == "set" else _ARGUMENTS.get(found[1], found[1].replace("-", "_")), text)


@contextmanager
def for_python(settings: str = "settings") -> Iterator[None]:
    """Errors of the block, or of the decorated function, name the arguments of Python."""
    try:
        yield
    except InstanceError as error:
        error.source = in_python(error.source, settings)
        error.faults = tuple(replace(fault, message=in_python(fault.message, settings)) for fault in error.faults)
        error.args = (error.source, error.faults)
        raise
    except ValueError as error:
        error.args = tuple(in_python(part, settings) if isinstance(part, str) else part for part in error.args)
        raise


@contextmanager
def refused_as_error() -> Iterator[None]:
    """What a command refuses with a line on standard error is a RefusedError instead."""
    said = StringIO()
    try:
        with redirect_stderr(said):
            yield
    except SystemExit as error:
        raise RefusedError(re.sub(r"^crossopt(?: \w+)?: ", "", said.getvalue().strip().rpartition("\n")[2])) from error


# The functions.

QuestionSource = str | Path | Mapping[str, Any] | Question | Answer
Design = Mapping[str, Any] | ChosenDesign | Answer | Evaluation
Settings = Mapping[str, Any]


@for_python()
def read(question: QuestionSource, settings: Settings | None = None, workload: str | None = None) -> Any:  # noqa: ANN401 - a question of any kind
    """Read a question without solving it, or a saved result: an Answer, or of fronts and comparisons a DesignFront or a Comparison.

    An invalid question raises an InstanceError with every fault. The figures of a saved result are computed again; `check` repeats
    its proof.

    Example:
        >>> question = crossopt.read("tiny", {"cluster.devices": 16})
        >>> question.name
        'tiny'
        >>> crossopt.solve("tiny").save("tiny.json")
        >>> crossopt.read("tiny.json").plan.data
        8
    """
    path = question_path(Path(question)) if isinstance(question, Path) or (isinstance(question, str) and "\n" not in question) else None
    if path is None or not is_result_file(path):
        return _read(question, settings, workload)[1]
    if settings or workload is not None:
        raise RefusedError(f"{path}: a saved result has its question in it (leave out settings and workload, or name a question)")
    return _saved(path)


def _saved(path: Path) -> "Answer | DesignFront | Comparison":
    """What a saved result is in Python."""
    from crossopt.reports.commands.report import saved_front, saved_result, saved_study  # noqa: PLC0415
    from crossopt.reports.comparisons import DesignFront, FrontPoint, comparison_of  # noqa: PLC0415

    kind = kind_of(path) or "codesign"
    if kind == "study":
        return comparison_of(saved_study(path))
    if kind == "front":
        question, objectives, found = saved_front(path)
        if not isinstance(question, Instance):
            raise RefusedError(f"{path}: a front of schedules has no object in Python (`crossopt report` draws it)")
        points = (FrontPoint(point.first, point.second, _point_answer(point.result)) for point in found.points)
        return DesignFront(question, objectives, tuple(points), found.proved, found)
    if kind not in KINDS:
        raise RefusedError(f"{path}: a result of the kind {kind!r} has no object in Python (`crossopt report` draws it)")
    question, result = saved_result(path, kind)
    return Answer(result, question)


def _point_answer(result: Any) -> Answer:  # noqa: ANN401 - a result about a joint design
    """A point of a front as an answer of its own."""
    return Answer(result, read_question(result.question))


def validate(question: QuestionSource, settings: Settings | None = None, workload: str | None = None) -> tuple[Fault, ...]:
    """Every fault of a question, each with its line, key and remedy; empty where it is valid.

    Example:
        >>> crossopt.validate("tiny")
        ()
        >>> [fault.path for fault in crossopt.validate("tiny", {"tensor": 3})]
        ['choices.tensor']
    """
    try:
        _read(question, settings, workload)
    except InstanceError as error:
        return tuple(replace(fault, message=in_python(fault.message)) for fault in error.faults)
    return ()


@for_python()
def solve(
    question: QuestionSource,
    *,
    engine: str = "auto",
    time_limit: float | str | None = None,
    gap: float = 0.0,
    seed: int = 0,
    workload: str | None = None,
    settings: Settings | None = None,
) -> Answer:
    """Find the best answer of a question, with its proof.

    Example:
        >>> answer = crossopt.solve("tiny", settings={"tensor": [1, 2, 4]}, time_limit="1 min")
        >>> answer.proved, answer.value == answer.bound
        (True, True)
        >>> answer.plan.data, round(answer.step_time, 3)
        (8, 0.152)
    """
    limits = _limits(engine, time_limit, gap, seed)
    kind, read = _read(question, settings, workload)
    from crossopt.solvers.checking import solve_and_verify  # noqa: PLC0415

    return Answer(solve_and_verify(_answering(kind), read, engine, limits, unwatched), read)


@for_python()
def plan(
    model: str,
    gpus: str,
    *,
    tokens: float | str | None = None,
    context: int | str | None = None,
    batch: int | str | None = None,
    precision: str | None = None,
    stack: str | None = None,
    deadline: str | None = None,
    rent: float | str | Mapping[str, float] | None = None,
    mode: Literal["fastest", "cheapest", "fewest"] = "fastest",
    time_limit: float | str | None = None,
) -> Answer:
    """The best plan for a training run, as `crossopt plan` finds it. `print` shows the verdict.

    A ValueError says in a sentence what of the arguments makes no sense.

    Example:
        >>> run = crossopt.plan("llama3-8b", "64xh100", tokens="1T", deadline="60d", rent=2.5)
        >>> run.plan.data, run.days < 60.0
        (64, True)
    """
    from argparse import Namespace  # noqa: PLC0415

    from crossopt.reports.commands.plan import best_plan, faults_by_option  # noqa: PLC0415

    if mode not in ("fastest", "cheapest", "fewest"):
        raise ValueError(f"mode: {mode!r} is unknown (one of fastest, cheapest, fewest)")
    counts = {"tokens": tokens, "context": context, "batch": batch}
    if broken := [(name, value) for name, value in counts.items() if isinstance(value, float) and not value.is_integer()]:
        raise ValueError(f"{broken[0][0]}: {broken[0][1]} is no whole number")
    texts = {name: f"{value:.0f}" if isinstance(value, float) else value for name, value in counts.items()}
    rents = ",".join(f"{name}={money}" for name, money in rent.items()) if isinstance(rent, Mapping) else rent
    given = {**texts, "rent": rents, "precision": precision, "stack": stack, "deadline": deadline, "time_limit": _with_unit(time_limit)}
    options = {name: None if value is None else str(value) for name, value in given.items()}
    try:
        with refused_as_error():
            best, text, _ = best_plan(Namespace(model=model, gpus=gpus, mode=mode, save=None, **options), unwatched, FOLLOWING)
    except InstanceError as error:
        raise ValueError(faults_by_option(error)) from error
    return Answer(best.result, best.question, text)


@for_python("design")
def evaluate(
    question: QuestionSource,
    design: Design | None = None,
    *,
    settings: Settings | None = None,
    workload: str | None = None,
) -> Evaluation:
    """Price one design of a joint-design question.

    `design` gives values of the choices, of which none may be left open; or it is a design of an answer, as an answer alone is. What
    `read` returned is not read again; a file is when it has changed.

    Example:
        >>> design = {"tensor": 4, "pipeline": 1, "microbatch": 2, "recompute": "none"}
        >>> priced = crossopt.evaluate("tiny", design)
        >>> priced.plan.data, priced.feasible, round(priced.mfu, 2)
        (2, True, 0.11)
    """
    from crossopt.solvers.codesign.judge import evaluate_choices, evaluate_design, evaluate_single  # noqa: PLC0415

    asked = question if isinstance(question, Instance) and not settings else _opened(question, settings, workload)
    if isinstance(question, Answer) and not settings and design is None:
        design = question
    if isinstance(design, Answer | Evaluation):
        design = design.evaluation.design if isinstance(design, Answer) else design.design
    if isinstance(design, ChosenDesign):
        single = evaluate_design(asked, design)
        return Evaluation(asked, single.design, single.evaluation, single.value)
    if design is not None and not isinstance(design, Mapping):
        raise TypeError(f"design: a mapping of choices to values or an answer is needed, not {type(design).__name__}")
    priced = evaluate_choices(asked, design or {})
    if priced is None:
        asked = read_question({**asked.document, "settings": (*asked.document["settings"], *_laid(design))})
        priced = evaluate_single(asked)
    return Evaluation(asked, priced.design, priced.evaluation, priced.value)


@for_python()
def check(result: Answer | str | Path | Mapping[str, Any], cross_check: bool = False) -> Report:
    """Verify a saved result from its question alone: `.accepted`, `.checked`, `.refused`, `.unverified` (solver-reported).

    Example:
        >>> answer = crossopt.solve("tiny")
        >>> crossopt.check(answer).accepted
        True
        >>> crossopt.check({**answer.data, "bound": 0.0}).accepted
        False
    """
    from crossopt.reports.commands.families import check as checked  # noqa: PLC0415

    with _file(result) as path:
        return checked(path, cross_check)


@for_python()
def compare(
    questions: QuestionSource | Sequence[QuestionSource],
    engines: Sequence[str] = (),
    *,
    time_limit: float | str | None = None,
    seeds: int = 1,
    settings: Settings | None = None,
) -> "Comparison":
    """Compare engines on questions; `to_frame()` has a row for each run.

    Without engines `auto` and `recipes` are asked about joint designs, and all engines about other questions.

    Example:
        >>> runs = crossopt.compare("tiny", ["boxes", "expert"], time_limit=5)
        >>> runs.best.engine, [run.proved for run in runs]
        ('boxes', [True, False])
    """
    from crossopt.reports.comparisons import comparison_of  # noqa: PLC0415
    from crossopt.solvers.study.records import Plan  # noqa: PLC0415
    from crossopt.solvers.study.running import ask, engine_named, run_all  # noqa: PLC0415

    listed = questions if isinstance(questions, Sequence) and not isinstance(questions, str) else (questions,)
    read_ones = [_read(question, settings, None) for question in listed]
    seconds = None if time_limit is None else _seconds(time_limit)
    if kinds := {kind for kind, _ in read_ones} - {"codesign"}:
        if len(read_ones) > 1:
            raise RefusedError(
                f"several questions in one comparison are joint designs (compare one about {KINDS[kinds.pop()].about} alone)"
            )
        return _engines_on(*read_ones[0], engines, seconds)
    plan = Plan("Engines side by side", "", tuple(map(engine_named, engines or ("auto", "recipes"))), seconds, seeds)
    instances = [_single_design_question(question, settings, None) for question in listed]
    return comparison_of(run_all(ask(plan, instances, [instance.name for instance in instances]), lambda line: None))


def _engines_on(kind: str, question: Any, engines: Sequence[str], seconds: float | None) -> "Comparison":  # noqa: ANN401 - of any kind
    """Compare engines on a question of another problem type."""
    from crossopt.reports.commands.asking import COMPARED, answers_of  # noqa: PLC0415
    from crossopt.reports.comparisons import Comparison, EngineRun  # noqa: PLC0415

    family = _answering(kind)
    limits = Limits(COMPARED if seconds is None else seconds)
    found = answers_of(family, question, engines or tuple(family.engines), limits, unwatched)
    names = ("seed", "status", "value", "bound", "proved", "seconds", "trace")
    return Comparison(tuple(EngineRun(question.name, engine, *(getattr(result, name) for name in names)) for engine, result in found))


@for_python()
def explain(
    question: QuestionSource, settings: Settings | None = None, near: float | None = None, time_limit: float | str | None = None
) -> "Explanation":
    """Explain an answer: what binds it, and what a little more of each limit would buy (`effects`).

    Where there is no design, `conflict` has the limits and choices that leave none. Several workloads are explained each alone.

    Example:
        >>> crossopt.explain("tiny").binding
        ()
        >>> crossopt.explain("tiny", {"budget.step_time": "1 ms"}).conflict
        ('step_time',)
    """
    from crossopt.reports.commands.explain import alone_text, explained, parts_of  # noqa: PLC0415
    from crossopt.reports.comparisons import Explanation  # noqa: PLC0415

    parts, limits = parts_of(_on_one_number(question, settings, None)), Limits(_seconds(time_limit))
    found = tuple((part, explained(part, near, limits, unwatched)) for part in parts)
    return Explanation(alone_text(parts) + "\n".join(item.text for _, item in found), found)


@for_python()
def sweep(
    question: QuestionSource,
    over: Mapping[str, Sequence[Any]],
    *,
    engine: str = "auto",
    time_limit: float | str | None = None,
    workload: str | None = None,
) -> "Sweep":
    """Solve a question under each combination of settings.

    `time_limit` is for each combination. Settings that make no question are kept with the reason. `crossopt sweep` does the same with
    several processes, and goes on where it was ended.

    Example:
        >>> sizes = crossopt.sweep("tiny", {"cluster.devices": [4, 8]})
        >>> [point.answer.plan.data for point in sizes]
        [4, 8]
        >>> frame = sizes.to_frame()  # a row for each point, with plan and figures
    """
    from itertools import product  # noqa: PLC0415

    from crossopt.reports.comparisons import Sweep, SweepPoint  # noqa: PLC0415

    points = list[SweepPoint]()
    for values in product(*over.values()):
        settings = dict(zip(over, values, strict=True))
        try:
            answer = solve(question, engine=engine, time_limit=time_limit, workload=workload, settings=settings)
        except (InstanceError, RefusedError) as error:
            points.append(SweepPoint(settings, None, str(error)))
        else:
            points.append(SweepPoint(settings, answer))
    if points and all(point.answer is None for point in points):
        return _refuse_sweep(question, points[0].settings, workload)
    name = next((point.answer.name for point in points if point.answer is not None), "")
    return Sweep(name, tuple(points))


def _refuse_sweep(question: QuestionSource, settings: Settings, workload: str | None) -> NoReturn:
    """Say what is wrong where no combination makes a question."""
    solve(question, time_limit=0.0, workload=workload, settings=settings)
    raise RefusedError("no combination of the settings makes a question")


@for_python()
def front(
    question: QuestionSource,
    first: str,
    second: str,
    *,
    points: int = 10,
    engine: str = "auto",
    time_limit: float | str | None = None,
    settings: Settings | None = None,
    workload: str | None = None,
) -> "DesignFront":
    """The Pareto front of two objectives: at most about `points` designs, each with its proof, found within one time limit.

    Objectives: step_time, time_per_sample, worst_step_time, energy_per_token, rated_energy_per_token, cost_per_token, run_cost, die_area
    and power.

    Example:
        >>> found = crossopt.front("small", "step_time", "energy_per_token", points=3)
        >>> found.proved, found[0].first < found[1].first, found[0].second > found[1].second
        (True, True, True)
        >>> path = found.plot().save("front.svg")
    """
    from time import monotonic  # noqa: PLC0415

    from crossopt.reports.comparisons import DesignFront, FrontPoint  # noqa: PLC0415
    from crossopt.solvers.checking import solve_and_verify  # noqa: PLC0415
    from crossopt.solvers.codesign.family import FAMILY  # noqa: PLC0415
    from crossopt.solvers.fronts import front as front_of  # noqa: PLC0415

    asked, limits = _single_design_question(question, settings, workload), Limits(_seconds(time_limit))
    deadline = monotonic() + limits.seconds

    def solve_part(part: Instance) -> Any:  # noqa: ANN401 - a result
        return solve_and_verify(FAMILY, part, engine, replace(limits, seconds=max(deadline - monotonic(), 0.0)), unwatched)

    found = front_of(FAMILY, asked, first, second, points, solve_part)
    several = (FrontPoint(point.first, point.second, _point_answer(point.result)) for point in found.points)
    return DesignFront(asked, (first, second), tuple(several), found.proved, found)


@for_python()
def export(
    source: Answer | str | Path,
    form: str | None = None,
    *,
    job: str | None = None,
    out: str | Path | None = None,
    settings: Settings | None = None,
    time_limit: float | str | None = None,
) -> str:
    """An answer in the form that another program takes, as `crossopt export` prints it; `out` is the file of forms that need one.

    Forms of plans are `megatron`, `torchtitan`, `deepspeed` and `fsdp`, with `job` as a job for `slurm`, `pytorchjob` or `jobset`; of
    placements `devices` and `split`; of strategies of layers `strategies`, `modelopt` and `torchao`; of integer models `lp`, `mps` and
    `cpsat`. `crossopt export --help` says what each is.

    Example:
        >>> flags = crossopt.export(crossopt.solve("tiny"), "megatron")
        >>> "--tensor-model-parallel-size 1" in flags
        True
    """
    from crossopt.reports.arguments import parser_of_commands  # noqa: PLC0415
    from crossopt.reports.launching.command import export as exported  # noqa: PLC0415

    options = {"--as": form, "--job": job, "--out": out, "--time-limit": _with_unit(time_limit)}
    given = [f"{name}={value}" for name, value in options.items() if value is not None]
    printed = StringIO()
    with _file(source) as path, refused_as_error(), redirect_stdout(printed):
        exported(parser_of_commands().parse_args(["export", str(path), *given, *(f"--set={text}" for text in _laid(settings))]))
    return printed.getvalue()


@for_python("axes")
def import_graph(path: str | Path, axes: Mapping[str, int] | None = None) -> "Network":
    """A network of an ONNX model, of torch.export or of `crossopt import` as a graph of operators; `axes` are lengths of open axes.

    Example:
        >>> network = crossopt.import_graph("model.onnx", {"batch": 8})  # doctest: +SKIP
        >>> network.save("graph.json")  # doctest: +SKIP
    """
    from crossopt.reports.commands.networks import Network, lengths_of, read_network  # noqa: PLC0415

    return Network(read_network(Path(path), lengths_of(_pairs(axes))))


@for_python("axes")
def place(
    model: str | Path,
    devices: str,
    *,
    problem: Literal["throughput", "latency"] | None = None,
    contiguous: Literal["stages", "convex", "no"] | None = None,
    transfers: Literal["calls", "overlapped"] | None = None,
    precision: Literal["bf16", "fp16", "fp32"] | None = None,
    training: bool = False,
    memory: str | None = None,
    bandwidth: str | None = None,
    axes: Mapping[str, int] | None = None,
    time_limit: float | str | None = None,
) -> Answer:
    """The device of each operator of a network, as `crossopt place` chooses it; `answer.answer.devices` has the devices by operator.

    Example:
        >>> answer = crossopt.place("model.onnx", "4xh100", axes={"batch": 8})  # doctest: +SKIP
        >>> print(crossopt.export(answer, "devices"))  # doctest: +SKIP
    """
    from argparse import Namespace  # noqa: PLC0415

    from crossopt.reports.commands.networks import USUAL_LIMIT  # noqa: PLC0415
    from crossopt.reports.commands.place import KIND, question_written  # noqa: PLC0415

    options = Namespace(model=Path(model), devices=devices, problem=problem, contiguous=contiguous, transfers=transfers, memory=memory)
    vars(options).update(precision=precision, training=training, bandwidth=bandwidth, settings=_pairs(axes), save=None)
    with refused_as_error():
        _, question = question_written(options)
    return _answered(KIND, question, USUAL_LIMIT if time_limit is None else _seconds(time_limit))


def _answered(kind: str, question: Any, seconds: float) -> Answer:  # noqa: ANN401 - of any kind
    """The answer to a question that a command wrote."""
    from crossopt.solvers.checking import solve_and_verify  # noqa: PLC0415
    from crossopt.solvers.family import family_of, simplest_of  # noqa: PLC0415

    family = family_of(kind)
    result = solve_and_verify(family, question, "auto", Limits(seconds), unwatched, simplest=simplest_of(family, question))
    return Answer(result, question)


def _pairs(given: Mapping[str, Any] | None) -> list[str]:
    """Settings as the command line has them."""
    return [f"{name}={value}" for name, value in (given or {}).items()]


@for_python("axes")
def quantize(
    model: str | Path,
    hardware: str,
    formats: Sequence[str] = (),
    *,
    devices: int | None = None,
    splits: Sequence[str] = (),
    minimize: str = "time",
    budget: Mapping[str, float | str] | None = None,
    peak: Mapping[str, str] | None = None,
    losses: str | Path | None = None,
    base: str | None = None,
    tie: str | None = None,
    training: bool = False,
    axes: Mapping[str, int] | None = None,
    time_limit: float | str | None = None,
) -> Answer:
    """A number format for each layer of a network, as `crossopt quantize` chooses it: at least time, or another figure, within budgets.

    With `devices`, each layer also takes one of the `splits` over so many devices: batch, features, inputs or space (default: all).
    `losses` is a CSV file with the columns layer, format and quality; `peak` gives speeds that the device's file lacks.

    Example:
        >>> answer = crossopt.quantize("model.onnx", "h100-sxm", ["fp8"], budget={"size": "12MB"})  # doctest: +SKIP
        >>> [layer.format for layer in answer.answer.layers]  # doctest: +SKIP
    """
    from argparse import Namespace  # noqa: PLC0415

    from crossopt.reports.commands.networks import USUAL_LIMIT  # noqa: PLC0415
    from crossopt.reports.commands.quantize import KIND, question_written  # noqa: PLC0415

    options = Namespace(model=Path(model), hardware=hardware, formats=",".join(formats), minimize=minimize, base=base, tie=tie)
    vars(options).update(devices=devices, splits=",".join(splits))
    vars(options).update(budget=_pairs(budget), peak=_pairs(peak), settings=_pairs(axes), training=training, save=None)
    options.losses = None if losses is None else Path(losses)
    with refused_as_error():
        _, question = question_written(options)
    return _answered(KIND, question, USUAL_LIMIT if time_limit is None else _seconds(time_limit))


@for_python("axes")
def checkpoint(
    model: str | Path,
    hardware: str,
    *,
    memory: str | None = None,
    share: float | str | None = None,
    precision: Literal["bf16", "fp16", "fp32"] | None = None,
    repetitions: int | None = None,
    axes: Mapping[str, int] | None = None,
    time_limit: float | str | None = None,
) -> Answer:
    """What a training step of a network computes again so that it fits into memory, as `crossopt checkpoint` chooses it.

    Example:
        >>> answer = crossopt.checkpoint("model.onnx", "a100-80g", memory="24 GiB", axes={"batch": 64})  # doctest: +SKIP
    """
    from argparse import Namespace  # noqa: PLC0415

    from crossopt.reports.commands.networks import USUAL_LIMIT  # noqa: PLC0415
    from crossopt.reports.commands.place import KIND_OF_MEMORY, memory_question  # noqa: PLC0415

    options = Namespace(model=Path(model), hardware=hardware, memory=memory, share=share, precision=precision, save=None)
    options.repetitions, options.policy = repetitions, None
    with refused_as_error():
        _, question = memory_question(options, dict(axes or {}))
    return _answered(KIND_OF_MEMORY, question, USUAL_LIMIT if time_limit is None else _seconds(time_limit))


@overload
def report(*results: Answer | str | Path, form: str = "html", out: None = None, check: bool = False) -> str: ...
@overload
def report(*results: Answer | str | Path, form: str = "html", out: str | Path, check: bool = False) -> Path: ...
@for_python()
def report(*results: Answer | str | Path, form: str = "html", out: str | Path | None = None, check: bool = False) -> str | Path:
    """Draw results as one HTML page, or as tables (`latex`, `csv`, `markdown`, `text`): the text, or the path of the file `out`.

    Proofs are shown as the files state them, unless `check` repeats them.

    Example:
        >>> str(crossopt.report(crossopt.solve("tiny"), out="tiny.html"))
        'tiny.html'
    """
    from crossopt.reports.commands.report import page_of, tables_on  # noqa: PLC0415

    with _files(results) as paths:
        text = page_of(*paths, check=check) if form == "html" else tables_on(form, paths, check)
    if out is None:
        return text
    write_atomically(Path(out), text)
    return Path(out)


@for_python()
def accuracy(file: str | Path, by: str = "source") -> dict[str, Any]:
    """The model's errors on measured runs in a CSV file, on measured kernels, which are grouped in all ways at once, or on serving.

    Example:
        >>> errors = crossopt.accuracy("runs.csv", by="model")  # doctest: +SKIP
        >>> errors["runs"], errors["totals"]  # doctest: +SKIP
    """
    from crossopt.instances.measured.kernels import kernels_in  # noqa: PLC0415
    from crossopt.instances.measured.runs import read_measured  # noqa: PLC0415
    from crossopt.instances.measured.serving import is_serving  # noqa: PLC0415
    from crossopt.reports.sheets.accuracy import document  # noqa: PLC0415
    from crossopt.reports.sheets.kernels import document_of_kernels  # noqa: PLC0415
    from crossopt.reports.sheets.served import document_of_serving  # noqa: PLC0415
    from crossopt.solvers.measured.accuracy import accuracy as of_runs  # noqa: PLC0415
    from crossopt.solvers.measured.accuracy import likely, predictions, with_variants  # noqa: PLC0415

    if (of := kernels_in(file)) is not None:
        return document_of_kernels(Path(file), of)
    if is_serving(file):
        return document_of_serving(Path(file))
    measured = read_measured(Path(file))
    seconds = predictions(measured.measurements, with_variants)
    return document(Path(file).name, of_runs(measured, seconds[:, 0], by, likely(measured.measurements, seconds)))


def _answering(kind: str) -> Any:  # noqa: ANN401 - the family of any kind
    """The problem type of a kind; a RefusedError if it has no single answer."""
    from crossopt.solvers.family import family_of  # noqa: PLC0415

    if not KINDS[kind].family:
        raise RefusedError(f"{KINDS[kind].about} ask many questions, and are run on the command line alone (`crossopt compare`)")
    return family_of(kind)


def _seconds(limit: float | str | None) -> float:
    """Seconds, or a duration such as `5min`; a ValueError where it is neither."""
    if limit is None:
        return inf
    try:
        seconds = parse_quantity(limit, "time") if isinstance(limit, str) else float(limit)
    except OverflowError:
        seconds = inf
    except ValueError as error:
        raise ValueError(f"time_limit: {error}") from error
    if not seconds >= 0.0:
        raise ValueError(f"time_limit: {limit} is no number of seconds from 0 on (a text such as '5min' has a unit)")
    return seconds


def _with_unit(limit: float | str | None) -> str | None:
    """A time limit as options have it."""
    return limit if limit is None or isinstance(limit, str) else None if (seconds := _seconds(limit)) == inf else f"{seconds}s"


def _limits(engine: object, time_limit: float | str | None, gap: float, seed: int) -> Limits:
    """Limits of a solve; an error in a sentence where an argument makes no sense, before anything is searched."""
    if not isinstance(engine, str):
        raise TypeError(f"engine: a name is needed (such as 'auto'), not {type(engine).__name__}")
    if isinstance(gap, bool) or not isinstance(gap, Real) or not 0.0 <= gap < 1.0:
        raise ValueError(f"gap: {gap!r} is no share from 0 to below 1 (0.01 for 1 %)")
    if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= seed < _SEEDS:
        raise ValueError(f"seed: {seed!r} is no whole number from 0 to below {_SEEDS:,}")
    return Limits(_seconds(time_limit), int(seed), float(gap))


_SEEDS = 1 << 31


def _read(question: QuestionSource, settings: Settings | None, workload: str | None) -> tuple[str, Any]:
    """The problem type of a question, and the question."""
    laid = _laid(settings)
    if not isinstance(question, str | Path | Mapping):
        question = question.question if isinstance(question, Answer) else question
        if (kind := kind_of_question(question)) is None:
            raise TypeError(f"a question is a path, a name, a text, a mapping or what read returned, not {type(question).__name__}")
        given = {"workload": None, **question.document}
        again = {**given, "settings": (*given["settings"], *laid), "workload": workload or given["workload"]}
        return kind, read_again(again, kind) if laid or workload else question
    text = _in_json(question) if isinstance(question, Mapping) else question if isinstance(question, str) and "\n" in question else None
    if text is None:
        path = question_path(Path(str(question)))
        return kind_of_file(path), read_file(path, laid, workload)
    kind = str(question.get("kind", "codesign")) if isinstance(question, Mapping) else kind_in(text)
    return kind, read_given(text, kind if kind in KINDS else "codesign", laid, workload)


def _laid(settings: Settings | None) -> tuple[str, ...]:
    """Settings as `--set` has them; numbers of a chip's areas and powers are in SI units."""
    if settings is not None and not (isinstance(settings, Mapping) and all(isinstance(key, str) and key for key in settings)):
        raise TypeError("settings: a mapping of keys to values is needed (such as {'tensor': 8})")
    return tuple(f"{key}={_written(key, value)}" for key, value in (settings or {}).items())


def _written(key: str, value: object) -> str:
    unit = {"area": " m^2", "power": " W"}.get(key.rpartition("_")[2], "") if isinstance(value, int | float) else ""
    return value if isinstance(value, str) else f"{_in_json(value, key)}{unit}"


def _in_json(value: object, path: str = "") -> str:
    """A value as a file has it; an InstanceError where no file can have it."""
    try:
        return json.dumps(value, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error).partition(";")[0]
        message = f"this value of Python has no form in a file: {reason} (numbers, texts, true, false, None, lists and mappings have one)"
        raise InstanceError("question", [Fault(1, 1, path, message)]) from error


def _plain(value: Any) -> object:  # noqa: ANN401 - a value that JSON lacks
    """What a path, and an array or a number of numpy, stand for."""
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no type of JSON")


_READ: dict[object, Instance] = {}
"""The last questions of which single designs were priced, by what they were read from."""
_MOST_READ = 16


def _opened(question: QuestionSource, settings: Settings | None, workload: str | None) -> Instance:
    """The joint design in a file, a text or a mapping, read once while these stay as they are; but anew where it names further files."""
    if not isinstance(question, str | Path | Mapping):
        return _single_design_question(question, settings, workload)
    laid, written = _laid(settings), _in_json(question) if isinstance(question, Mapping) else str(question)
    path = question_path(Path(written)) if not isinstance(question, Mapping) and "\n" not in written else None
    state = path.stat() if path is not None and path.is_file() else None
    key = (written, laid, workload, Path.cwd(), state and (state.st_ino, state.st_mtime_ns, state.st_size))
    if key not in _READ:
        found = _single_design_question(question, settings, workload)
        if found.document.get("files"):
            return found
        if len(_READ) >= _MOST_READ:
            del _READ[next(iter(_READ))]
        _READ[key] = found
    return _READ[key]


def _single_design_question(question: QuestionSource, settings: Settings | None, workload: str | None) -> Instance:
    """A joint design of one workload on one number of devices; an InstanceError or a RefusedError where it is none."""
    found = _on_one_number(question, settings, workload)
    return found if isinstance(found, Instance) else read_question(found.document)  # which says that one is needed, and which there are


def _on_one_number(question: QuestionSource, settings: Settings | None, workload: str | None) -> Instance | Portfolio:
    """The joint design of one workload or several. A RefusedError for other problem types, and for several numbers of devices,
    networks or batches.
    """
    kind, read = _read(question, settings, workload)
    if kind != "codesign":
        raise RefusedError(f"this needs a joint design, not a question about {KINDS[kind].about} (take solve)")
    if isinstance(read, Instance | Portfolio):
        return read
    if read.networks:
        raise RefusedError(f"{several_text(read)} are given, but one is needed ({key_compared(read)}: one of {'; '.join(read.networks)})")
    if read.batches:
        raise RefusedError(f"{several_text(read)} are given, but one is needed (workload.global_batch: one of {read.samples})")
    counts = ", ".join(map(str, read.counts))
    raise RefusedError(f"{len(read.counts)} numbers of devices are given, but one is needed (cluster.devices: one of {counts})")


_NO_RESULT = "a result is an Answer or a path, not {}"


@contextmanager
def _file(result: Answer | str | Path | Mapping[str, Any]) -> Iterator[Path]:
    """The file of the result: the path itself, or a temporary file for a result that is not a path."""
    if isinstance(result, str | Path):
        yield Path(result)
        return
    if not isinstance(result, Answer | Mapping):
        raise TypeError(_NO_RESULT.format(type(result).__name__))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        path.write_text(_in_json(result.data if isinstance(result, Answer) else result), encoding="utf-8")
        yield path


@contextmanager
def _files(results: Sequence[Answer | str | Path]) -> Iterator[list[Path]]:
    """The files of the results, in order: paths as they are, and a temporary file for each Answer."""
    with TemporaryDirectory() as folder:
        paths = []
        for index, result in enumerate(results):
            if isinstance(result, Answer):
                paths.append(Path(folder) / f"result-{index + 1}.json")
                result.save(paths[-1])
            elif isinstance(result, str | Path):
                paths.append(Path(result))
            else:
                raise TypeError(_NO_RESULT.format(type(result).__name__))
        yield paths
