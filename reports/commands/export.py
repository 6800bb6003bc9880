"""What `crossopt export` reads and refuses: the plan of a result for a training stack, or a question for a model file."""

import sys
from argparse import Namespace
from pathlib import Path

from crossopt.crossflow.plan import Plan
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_instance, read_question
from crossopt.reports.commands.files import read_result
from crossopt.reports.commands.progress import progress_on
from crossopt.reports.commands.workloads import design_in
from crossopt.solvers.answer import Status
from crossopt.solvers.codesign.answer import from_words


def plan_of(options: Namespace) -> tuple[Instance, Transformer, Plan]:
    """The plan of a result with its question; a ValueError in words where there is none that could be launched."""
    given = {"--set": options.settings, "--out": options.out, "--within": options.within, "--time-limit": options.time_limit}
    for name, value in given.items():
        if value not in (None, []):
            raise ValueError(f"{name}: this belongs to models (--as lp, mps or cpsat); the settings of {options.stack} are printed")
    if options.file.suffix in {".yaml", ".yml"} or (not options.file.suffix and not options.file.exists()):
        raise ValueError(f"{options.file}: a question has no plan (name a result of `solve --out`, or take --as lp, mps or cpsat)")
    instance, design = design_in(read_result(options.file), options.workload, options.file)
    if design is None:
        raise ValueError(f"{options.file}: there is no design in this result (solve a question that has one)")
    plan = from_words(instance, design).plan
    if not isinstance(instance.workload, Transformer) or not isinstance(plan, Plan):
        raise ValueError(f"{options.file}: only plans of transformers can be launched so")
    return instance, instance.workload, plan


def export_model(question: Path, options: Namespace, seconds: float) -> Status:
    """Write the model of a question, or of the question of a result, and say what was written, or why nothing was."""
    from crossopt.solvers.codesign.linear.model_files import Asked, target_of, write_model  # noqa: PLC0415

    instance = _instance(question, tuple(options.settings), options.workload)
    asked = Asked(options.stack, target_of(options.stack, options.out, instance.name), options.within or 0.0, seconds)
    with progress_on(sys.stderr, "s") as watch:
        told = write_model(instance, asked, watch)
    if isinstance(told, str):
        sys.stdout.write(told)
        return "FEASIBLE"
    sys.stderr.write(f"{instance.name}: {told.why}\n")
    return told.status


def _instance(question: Path, settings: tuple[str, ...], workload: str | None) -> Instance:
    """The question in a YAML file, with the settings laid over it, or the one that a result answers."""
    if question.suffix != ".json" or settings:
        return read_instance(question, settings, workload)
    asked = read_result(question).instance
    return read_question({**asked, "workload": workload} if workload else asked)
