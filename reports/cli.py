"""The command line: reads arguments, calls one function, prints, and turns every outcome into an exit code."""

import argparse
import codecs
import errno
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from io import StringIO
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from crossopt.instances.kinds import STANDARD_INPUT, name_of, question_path
from crossopt.reports.arguments import parser_of_commands, remedies_of
from crossopt.reports.commands import console

if TYPE_CHECKING:
    from crossopt.instances.measured.kernels import Of
    from crossopt.solvers.measured.accuracy import Accuracy

INTERNAL, INVALID, REFUSED = 1, 3, 30
_BETWEEN_COLLECTIONS = 5000
"""Objects more than were freed, after which Python collects garbage: 700 unless someone says so."""
_INTERRUPTED = "interrupted before there was an answer"
_MORE = "no answer and no proof of infeasibility (exit code 10)"
_UNASKED = "some runs are not finished (exit code 12): `crossopt sweep FILE --store FOLDER` runs them and stores their results"
_EARLY = "ended early (exit code 12): the table lacks the runs that were not finished"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code says how it ended."""
    _make_printable()
    if (
        arguments is None
    ):  # the process is ours, and modules leave no garbage: loading them takes a tenth less where it is looked for seldom
        gc.set_threshold(_BETWEEN_COLLECTIONS)
    return _coded(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    parser = parser_of_commands()
    options = parser.parse_args(arguments)
    if "command" not in options:
        sys.stderr.write(parser.format_help())
        return console.USAGE
    for name in ("file", "model", "submission"):
        if getattr(options, name, None) == Path("/dev/stdin"):
            setattr(options, name, STANDARD_INPUT)
    console.refuse_lost_files(options)
    if isinstance(sys.stdout, _Closed) and getattr(options, "out", "") is None:
        console.usage("standard output is closed, and the answer would be lost (name a file with --out)")
    guarded = arguments is None and options.command in _GUARDED and not getattr(options, "relaxation", False)
    if arguments is None and not guarded:  # SIGTERM is how batch systems say Ctrl-C; who guards sees to it
        signal.signal(signal.SIGTERM, console.interrupt)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, console.interrupt)
    code = _guarded(options) if guarded else _run_command(options)
    sys.stdout.flush()
    if code == console.ENDED_EARLY:
        sys.stderr.write(f"{_UNASKED if options.command == 'sweep' else _EARLY}\n")
    return code


def _coded(run: Callable[[], int]) -> int:
    """The exit code of what is run, and a sentence about what became of it where it is none that the run itself gives."""
    try:
        return run()
    except BrokenPipeError:
        _leave_output()
        return console.ANSWERED
    except KeyboardInterrupt as ended:
        sys.stderr.write(f"{str(ended) or _INTERRUPTED}\n")
        return console.NO_DESIGN
    except Exception as error:  # noqa: BLE001 - the last line of defence: no traceback reaches a user
        if console.INTERRUPTS and type(error).__name__ == "LateError":
            sys.stderr.write(f"{_INTERRUPTED}\n")
            return console.NO_DESIGN
        return _failed(error)


def _run_command(options: argparse.Namespace) -> int:
    """The exit code of a command."""
    if options.command in _LIGHT:
        console.load_numpy_without_threads()
    code = COMMANDS[options.command](options)
    if code == console.NO_DESIGN and not _is_interrupted():
        sys.stderr.write(_without_answer(options.command, getattr(options, "engine", None)))
    return code


def _is_interrupted() -> bool:
    """Whether a person, or a system, ended the command, who needs no advice on what would give it more time."""
    from crossopt.reports.commands.keeper import keeper  # noqa: PLC0415

    keep = keeper()
    return bool(console.INTERRUPTS) if keep is None else keep.asked_to_end


def _without_answer(command: str, engine: str | None) -> str:
    """A line on a search that found nothing in time, with what may help by the options of the command."""
    return f"{_MORE}: {remedies}\n" if (remedies := remedies_of(command, engine)) else f"{_MORE}\n"


def _guarded(options: argparse.Namespace) -> int:
    """The exit code of a command that runs in a child process, while this one keeps its answers and loads nothing."""
    from crossopt.reports.commands.keeper import guarded  # noqa: PLC0415

    given = console.seconds_of(options.time_limit) if options.command == "solve" else inf  # that of a comparison is of each engine
    usual = options.command == "solve" and options.time_limit is None
    unanswered = _without_answer(options.command, getattr(options, "engine", None))
    seconds = console.USUAL_LIMIT if usual else given
    return guarded(lambda: _coded(lambda: _run_command(options)), seconds, options.out, usual=usual, unanswered=unanswered)


def solve_main() -> int:
    """The command `solve FILE`, short for `crossopt solve FILE`."""
    return main(["solve", *sys.argv[1:]])


def _failed(error: Exception) -> int:
    from crossopt.instances.errors import InstanceError  # noqa: PLC0415

    if _is_starved(error):
        console.say("not enough memory (free some, raise `ulimit -v`, or reduce the question)")
        return INTERNAL
    if isinstance(error, OSError) and error.errno is not None:
        if error.filename is None and error.errno in _OF_OUTPUTS:
            _leave_output()
        where = error.filename or ("standard output" if error.errno in _OF_OUTPUTS else "a file that the system does not name")
        console.say(f"{where}: {_uncapitalised(error.strerror or type(error).__name__)}")
        return INVALID
    if type(error).__name__ == "RefusedError":
        console.say(str(error))
        return console.USAGE
    if isinstance(error, InstanceError) or type(error).__name__ in {"FailedError", "LateError", "ModelError", "SolverError"}:
        console.say(str(error))
        return INVALID
    if type(error).__name__ == "VerificationError":
        console.say(f"verification failed: {error}")
        return REFUSED
    if "CROSSOPT_DEBUG" in os.environ:
        raise error
    message = " ".join(str(error).split())
    console.say(f"internal error: {type(error).__name__}: {message} (set CROSSOPT_DEBUG=1 for the details, and please report it)")
    return INTERNAL


def _uncapitalised(text: str) -> str:
    return text[:1].lower() + text[1:]


_OF_OUTPUTS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""Errors of an open output; errors of other files carry their names."""
_STARVED = ("cannot allocate memory", "failed to map segment", "unable to allocate", "can't start new thread", "bad_alloc")


def _is_starved(error: BaseException | None) -> bool:
    """Whether memory ran out, by the messages of Python, solvers and the loader of libraries."""
    while error is not None:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return True
        if not isinstance(error, ValueError) and any(message in str(error).lower() for message in _STARVED):
            return True
        error = error.__cause__ or error.__context__
    return False


_PLAIN = {"█": "#", "·": ",", **dict.fromkeys("▏▎▍▌▋▊▉", ".")}


def _make_printable() -> None:
    """Print signs that the terminal's character set lacks as plain ones instead of failing; do without an output that is closed."""
    codecs.register_error("crossopt", _plain)
    sys.stdout, sys.stderr = sys.stdout or _Closed(), sys.stderr or _Closed()
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="crossopt")


class _Closed(StringIO):
    """An output that is closed."""


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_PLAIN.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


def _leave_output() -> None:
    """Point standard output at nothing, so that what is still unwritten cannot fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _by_kind(options: argparse.Namespace) -> int:
    """A command about a question, which its kind answers."""
    from crossopt.instances.errors import InstanceError  # noqa: PLC0415
    from crossopt.instances.kinds import kind_of_file  # noqa: PLC0415
    from crossopt.reports.commands.families import command_of  # noqa: PLC0415

    try:
        ending = command_of(kind_of_file(question_path(options.file)), options.command)(options)
    except InstanceError as error:
        raise InstanceError(error.source, error.faults, "" if options.command == "validate" else error.undone) from error
    return console.code_of(ending.status, getattr(options, "strict", False) and not ending.proved)


_UNCHECKED = "not verified: names of questions, notes, timings, versions, and which search found an answer or a baseline"
_UNCHECKED_MODEL = "not verified: that this is the model of a question (`crossopt check` of the result shows it), and comments"


def _check(options: argparse.Namespace) -> int:
    from crossopt.reports.commands.families import VIPR, check  # noqa: PLC0415
    from crossopt.reports.render.width import fitted  # noqa: PLC0415

    both = options.network, options.system
    if options.file.is_dir() or options.file.suffix == ".tar":
        from crossopt.reports.commands.traces import check_traces  # noqa: PLC0415

        if (options.network is None) != (options.system is None):
            console.usage("--network and --system: ASTRA-sim's two files belong together (name both)")
        if options.remote_memory is not None and None in both:
            console.usage("--remote-memory: it belongs to --network and --system (name all three)")
        more = () if options.remote_memory is None else (options.remote_memory,)
        return console.ANSWERED if check_traces(options.file, None if None in both else (*both, *more)) else REFUSED
    if both != (None, None):
        console.usage(f"--network: {options.file} is no folder and no .tar with traces (leave it out)")
    report = check(options.file, options.cross_check)
    for line in (*report.checked, *(f"REFUSED  {line}" for line in report.refused)):
        sys.stdout.write(fitted(f"  {line}\n"))
    if report.accepted:
        sys.stdout.write(fitted(f"  {_UNCHECKED_MODEL if options.file.suffix == VIPR else _UNCHECKED}\n"))
    accepted = "accepted, except the bound, which is solver-reported and was not proved again" if report.unverified else "accepted"
    sys.stdout.write(fitted(f"{name_of(options.file)}: {accepted if report.accepted else 'refused'}\n"))
    return console.ANSWERED if report.accepted else REFUSED


def _compare(options: argparse.Namespace) -> int:
    from crossopt.reports.commands.compare import compare  # noqa: PLC0415

    return console.code_of_ending(compare(options))


def _accuracy(options: argparse.Namespace) -> int:
    import json  # noqa: PLC0415

    from crossopt.instances.files.saved import write_atomically  # noqa: PLC0415
    from crossopt.instances.measured.kernels import kernels_in  # noqa: PLC0415
    from crossopt.instances.measured.runs import read_measured  # noqa: PLC0415
    from crossopt.reports.render.terminal import terminal  # noqa: PLC0415
    from crossopt.reports.sheets.accuracy import accuracy_sheet, document, plot  # noqa: PLC0415
    from crossopt.solvers.measured.accuracy import accuracy, likely, predictions, with_variants  # noqa: PLC0415

    console.check_target(options.plot, "--plot")
    if str(options.plot) == "-":
        console.usage("--plot -: a picture goes into a file of its own (name one)")
    _refuse_forms(options)
    if (of := options.of or kernels_in(options.file)) is not None:
        if options.form != "text":
            console.usage(f"--as {options.form}: kernels are printed as text or with --json (leave it out)")
        return _accuracy_of_kernels(options, of)
    if _is_serving(options):
        return _accuracy_of_serving(options)
    if options.constants:
        console.usage("--constants: only kernels are priced by them (a question has its own under `efficiency`)")
    measured, name = read_measured(options.file), options.file.name
    seconds = predictions(measured.measurements, with_variants)
    result = accuracy(measured, seconds[:, 0], options.by, likely(measured.measurements, seconds))
    if options.form != "text":
        return _accuracy_as(options, result)
    sheet = accuracy_sheet(name, result, options.worst)
    report = f"{json.dumps(document(name, result), indent=2, allow_nan=False)}\n" if options.json else terminal(sheet)
    try:
        if options.plot and result.predictions:
            write_atomically(options.plot, plot(name, result))
        elif options.plot:
            sys.stderr.write(f"--plot {options.plot}: not written, as no run could be predicted\n")
    finally:  # a full disk must not cost the answer
        sys.stdout.write(report)
    return console.ANSWERED if result.predictions else INVALID


def _refuse_forms(options: argparse.Namespace) -> None:
    """Say so where a form makes no sense before anything is priced."""
    console.check_target(options.out)
    if options.form != "text" and options.json:
        console.usage(f"--json: this does not apply to --as {options.form} (leave one of them out)")
    if options.form == "text" and options.out is not None:
        console.usage("--out: the text is printed (say --as html, latex, csv or markdown for a file)")


def _accuracy_as(options: argparse.Namespace, result: "Accuracy") -> int:
    from crossopt.instances.files.saved import write_atomically  # noqa: PLC0415
    from crossopt.reports.render.paper import sheet_in  # noqa: PLC0415
    from crossopt.reports.sheets.accuracy import accuracy_sheet, document  # noqa: PLC0415

    written = sheet_in(options.form, accuracy_sheet(options.file.name, result), document(options.file.name, result))
    if options.out is None or str(options.out) == "-":
        sys.stdout.write(written)
    else:
        write_atomically(options.out, written)
    return console.ANSWERED if result.predictions else INVALID


def _accuracy_of_kernels(options: argparse.Namespace, of: "Of") -> int:
    from crossopt.reports.sheets.kernels import accuracy_of_kernels  # noqa: PLC0415

    try:
        report, any_priced = accuracy_of_kernels(options, of)
    except ValueError as error:
        console.usage(str(error))
    sys.stdout.write(report)
    return console.ANSWERED if any_priced else INVALID


def _is_serving(options: argparse.Namespace) -> bool:
    from crossopt.instances.measured.serving import is_serving  # noqa: PLC0415

    return is_serving(options.file)


def _accuracy_of_serving(options: argparse.Namespace) -> int:
    from crossopt.reports.sheets.served import accuracy_of_serving  # noqa: PLC0415

    if options.form != "text":
        console.usage(f"--as {options.form}: serving is printed as text or with --json (leave it out)")
    try:
        report, priced = accuracy_of_serving(options)
    except ValueError as error:
        console.usage(str(error))
    sys.stdout.write(report)
    return console.ANSWERED if priced else INVALID


def _calibrate(options: argparse.Namespace) -> int:
    from crossopt.instances.files.saved import write_atomically  # noqa: PLC0415
    from crossopt.reports.sheets.kernels import fitted_sections  # noqa: PLC0415

    console.check_target(options.out)
    try:
        text = fitted_sections(options.file, options.gpu, options.of, options.stack)
    except ValueError as error:
        console.usage(str(error))
    try:
        if options.out and str(options.out) != "-":
            write_atomically(options.out, text)
    finally:
        sys.stdout.write(text)
    return console.ANSWERED


def _export(options: argparse.Namespace) -> int:
    from crossopt.reports.launching.command import export  # noqa: PLC0415

    return export(options)


def _report(options: argparse.Namespace) -> int:
    from crossopt.reports.commands.report import report  # noqa: PLC0415

    report(options)
    return console.ANSWERED


def _list(options: argparse.Namespace) -> int:
    from crossopt.instances.catalogue.registry import UnknownNameError, descriptions, entry_text, sheet_text  # noqa: PLC0415

    try:
        shown = entry_text(options.kind, options.show) if options.show is not None else None
        shown = sheet_text(options.sheet) if options.sheet is not None else shown
    except UnknownNameError as error:
        console.usage(f"{'--show' if options.sheet is None else '--sheet'}: {error}")
    if shown is not None and options.json:
        console.usage("--json: this lists names, and a file is printed as it is (leave --show and --sheet out)")
    if shown is not None:
        sys.stdout.write(shown)
        return console.ANSWERED
    if options.kind == "operators":
        from crossopt.reports.commands.networks import operator_rows  # noqa: PLC0415

        rows = operator_rows()
    else:
        rows = descriptions(options.kind)
    if options.json:
        import json  # noqa: PLC0415

        named = [{"name": name, "description": text} for name, text in rows]
        sys.stdout.write(f"{json.dumps(named, indent=2, ensure_ascii=False)}\n")
        return console.ANSWERED
    width = max((len(name) for name, _ in rows), default=0)
    sys.stdout.writelines(f"{name:<{width}}  {text}\n" for name, text in rows)
    return console.ANSWERED


def _own(module: str, name: str) -> Callable[[argparse.Namespace], int]:
    """A command whose module is loaded when it is asked for, and says the exit code itself."""

    def run(options: argparse.Namespace) -> int:
        code: int = getattr(import_module(f"crossopt.reports.commands.{module}"), name)(options)
        return code

    return run


def _compile(options: argparse.Namespace) -> int:
    from time import monotonic  # noqa: PLC0415

    from crossopt.formulation.compiled import COMPILES, INSTALL  # noqa: PLC0415
    from crossopt.reports.commands.progress import progress_on  # noqa: PLC0415
    from crossopt.solvers.placement.annealing import warmed as warm_annealing  # noqa: PLC0415
    from crossopt.solvers.sharding.engines import warm_search, warmed  # noqa: PLC0415

    del options
    if not COMPILES:
        console.usage(f"there is nothing to compile, as numba is not installed ({INSTALL})")
    began = monotonic()
    with progress_on(sys.stderr, "") as watch:
        warmed(watch, lambda: False)
        warm_search(watch, lambda: False)
        warm_annealing()
    sys.stdout.write(f"compiled, or loaded as compiled before, in {monotonic() - began:.1f} s\n")
    return console.ANSWERED


_GUARDED = ("solve", "compare", "explain")
"""Commands whose answers are kept by a process of their own."""
_LIGHT = ("validate", "list")
"""Commands that price nothing and multiply no matrices."""
COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "plan": _own("plan", "plan"),
    "place": _own("place", "place"),
    "quantize": _own("quantize", "quantize"),
    "checkpoint": _own("place", "checkpoint"),
    "serve": _own("serving", "serve"),
    "embed": _own("embed", "embed"),
    "solve": _by_kind,
    "validate": _by_kind,
    "evaluate": _by_kind,
    "check": _check,
    "explain": _by_kind,
    "compare": _compare,
    "sweep": _own("sweep", "sweep"),
    "accuracy": _accuracy,
    "calibrate": _calibrate,
    "import": _own("networks", "import_files"),
    "export": _export,
    "report": _report,
    "ui": _own("ui", "ui"),
    "list": _list,
    "grade": _own("course", "grade"),
    "course": _own("course", "course"),
    "compile": _compile,
    "schema": _own("schema", "schema"),
    "completion": _own("completion", "completion"),
}


if __name__ == "__main__":
    raise SystemExit(main())
