"""The command `sweep`: a study's runs answered by several processes into a folder, and what is there told, checked and put into tables.

The first process is started before anything else is loaded here, so that what it loads is loaded meanwhile.
"""

from argparse import Namespace
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from crossopt.instances.kinds import question_path
from crossopt.reports.arguments import ACTIONS, OF_ACTIONS, OF_RUNS
from crossopt.reports.commands.console import usage
from crossopt.solvers.sweeps.leases import start

_USUAL = ("codesign",)
"""Kinds of questions that most studies ask."""


def sweep(options: Namespace) -> int:
    """Ask what of a study has no answer yet; or the action that is named first."""
    action, *rest = options.words
    if action not in ACTIONS:
        if rest:
            usage(f"{action} {rest[0]}: a sweep runs one study; the other actions are {', '.join(ACTIONS)} (see `crossopt sweep --help`)")
        _refuse_unused_options(options, OF_RUNS, "sweep FILE")
        return _run(options, Path(action))
    if len(rest) != 1:
        usage(f"sweep {action}: say of what, once (`crossopt sweep {action} {'FILE' if action == 'script' else 'runs/'}`)")
    _refuse_unused_options(options, OF_ACTIONS[action], f"sweep {action}")
    act: Callable[[Namespace, Path], int] = getattr(import_module("crossopt.reports.commands.sweeps"), action)
    return act(options, Path(rest[0]))


def _refuse_unused_options(options: Namespace, used: Sequence[str], command: str) -> None:
    """Refuse options that say nothing to what is asked instead of passing over them."""
    flags = {"form": "as", "settings": "set"}
    for name in dict.fromkeys((*OF_RUNS, *(name for names in OF_ACTIONS.values() for name in names))):
        if name not in used and getattr(options, name):
            usage(f"--{flags.get(name, name.replace('_', '-'))}: this does not apply to `{command}` (leave it out)")


def _run(options: Namespace, path: Path) -> int:
    """Answer what is left; where there is no folder yet, all of it is, and a process is needed at once."""
    memory = None if options.memory is None else _bytes_of(options.memory)
    new = (
        question_path(path).exists() and options.store is not None and not options.store.exists() and not (options.dask or options.dry_run)
    )
    begun = [start(memory, _USUAL)] if new else []
    try:
        from crossopt.reports.commands.sweeps import answer  # noqa: PLC0415 - loaded while the process loads

        return answer(options, path, memory, begun, _USUAL)
    finally:
        for worker in begun:
            worker.bury()


def _bytes_of(text: str) -> int:
    from crossopt.instances.files.units import parse_quantity  # noqa: PLC0415 - few limit it

    try:
        return int(parse_quantity(text, "bytes"))
    except ValueError:
        usage(f"--memory: {text!r} is no size (write for example 4GiB)")
