"""Arguments, options and help of every command."""

import argparse
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NoReturn

from crossopt import __version__
from crossopt.instances.files.units import exact_quantity, nearest

ACTIONS: Final = ("status", "table", "check", "index", "script")
"""What else may be done about a sweep."""
SWEEP_FORMS: Final = ("csv", "markdown", "parquet", "html")
RETRIED: Final = ("failed", "limit")
OF_RUNS: Final = ("settings", "dask", "store", "workers", "shard", "retry", "dry_run", "time_limit", "memory")
OF_ACTIONS: Final = {
    "status": (),
    "table": ("form", "columns", "seconds", "out"),
    "check": ("sample",),
    "index": (),
    "script": ("settings", "store", "workers", "retry", "time_limit", "memory", "slurm", "shards", "out"),
}
"""The options that say something to each of them."""

_CODES = """exit codes: 0 all answered, also where the answer is that there is none · 1 some failed · 2 usage · 3 invalid file ·
11 some are answered without a proof · 12 ended early · 30 of check: a result does not hold"""
_SWEEP_WHAT = (
    "a study, to run what is not finished yet; or status, table, check or index with the folder of a sweep; or script with a study"
)


class Settings(argparse.Action):
    """Settings of a question in their order, of which a later one narrows a list or a mapping, or takes it away; a key with two values of
    which neither does is refused, as one of them would be passed over."""

    def __call__(self, parser: object, namespace: argparse.Namespace, values: Any, option_string: str | None = None) -> None:  # noqa: ANN401 - as the class above declares it
        del parser, option_string
        key, given = _key_of(values), getattr(namespace, self.dest)
        other = next((setting for setting in given if _key_of(setting) == key and setting != values), None)
        if other and not _is_open(other) and not _is_open(values):
            raise argparse.ArgumentError(self, f"{other} and {values} say two things (keep one)")
        setattr(namespace, self.dest, [*given, values])


def _key_of(setting: str) -> str:
    """The key of a setting; a choice may be written with its section or without."""
    return setting.partition("=")[0].strip().removeprefix("choices.")


def _is_open(setting: str) -> bool:
    """Whether a setting has no single value."""
    value = setting.partition("=")[2].strip()
    return value.startswith(("[", "{")) or value in ("", "null", "~", "all", "divisors")


def add_sweep(parser: argparse.ArgumentParser) -> None:
    """Arguments of `sweep`."""
    parser.epilog, parser.formatter_class = _CODES, argparse.RawDescriptionHelpFormatter
    parser.add_argument("words", nargs="+", metavar="FILE", help=_SWEEP_WHAT)
    parser.add_argument(
        "--store", type=Path, metavar="DIR", help="folder of results, one file for each run; finished runs are not repeated"
    )
    parser.add_argument(
        "--workers", type=_count, metavar="N", help="number of worker processes, each with one thread (default: one per core)"
    )
    parser.add_argument(
        "--set",
        dest="settings",
        action=Settings,
        default=[],
        metavar="KEY=VALUE",
        help="override a value of every question, as for `solve`",
    )
    parser.add_argument("--shard", type=_shard, metavar="I/N", help="only the I-th of N equal parts, counted from 0, such as 3/40")
    retry = "also repeat failed runs, or runs that reached the time limit without a proof: failed, limit, or both, separated by a comma"
    parser.add_argument("--retry", type=_retried, metavar="WHAT", help=retry)
    parser.add_argument("--dry-run", action="store_true", help="read all questions and print the number of runs, without running them")
    parser.add_argument("--time-limit", metavar="TIME", help="time limit of each run, for example 60s (default: the study's)")
    parser.add_argument(
        "--memory", metavar="SIZE", help="memory limit of each process, such as 4GiB; a run that exceeds it fails, and the others continue"
    )
    dask = "run on a Dask cluster: the address of its scheduler, or `local` for one on this machine"
    parser.add_argument("--dask", metavar="ADDRESS", help=dask)
    of_table = parser.add_argument_group("table")
    of_table.add_argument(
        "--as", dest="form", choices=SWEEP_FORMS, help="CSV (default), Markdown, Parquet (needs pyarrow), or an HTML page"
    )
    of_table.add_argument("--columns", metavar="NAMES", help="columns to print, separated by commas")
    of_table.add_argument("--seconds", action="store_true", help="add the run times in seconds, which vary between repetitions")
    of_table.add_argument("--out", type=Path, metavar="FILE", help="output file of tables and scripts (default: standard output)")
    of_check = parser.add_argument_group("check")
    of_check.add_argument("--sample", type=_count, metavar="N", help="check N results, evenly chosen, instead of all")
    of_script = parser.add_argument_group("script")
    of_script.add_argument("--slurm", action="store_true", help="write a script for sbatch: a job array with one job per shard")
    of_script.add_argument("--shards", type=_count, metavar="N", help="number of shards (default: 10)")
    parser.set_defaults(command="sweep")


def _count(text: str) -> int:
    if not text.isdecimal() or len(text) > 6 or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no count (write a whole number from 1 on)")
    return int(text)


def _shard(text: str) -> tuple[int, int]:
    first, slash, second = text.partition("/")
    if not slash or not (first.isdecimal() and second.isdecimal()) or len(text) > 12 or int(first) >= int(second):
        raise argparse.ArgumentTypeError(f"{text!r} is no shard (write I/N with I from 0 to N-1, such as 0/4)")
    return int(first), int(second)


def _retried(text: str) -> tuple[str, ...]:
    states = tuple(state.strip() for state in text.split(","))
    if strange := [state for state in states if state not in RETRIED]:
        raise argparse.ArgumentTypeError(f"{strange[0]!r} is not a value of --retry (one of {', '.join(RETRIED)})")
    return states


# What `import` takes.

_LONGEST = 10**18


def add_import(parser: ArgumentParser, count: Callable[[str], int]) -> None:
    """All of it; `count` reads a count."""
    of_time: dict[str, Any] = {"type": nanoseconds_of, "metavar": "TIME"}
    parser.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="a network as an ONNX model (.onnx) or a file of torch.export (.pt2), or traces of ranks of one job, plain or in .gz: "
        "Kineto JSON of PyTorch's profiler, Chakra (.et, JSON), host traces of PyTorch",
    )
    axes = "the length of an open axis of a network, such as batch=32, or ids.1=128 for axis 1 of the input ids"
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="AXIS=LENGTH", help=axes)
    parser.add_argument(
        "--rank", type=count, metavar="N", help="rank to keep if there are several traces (default: that of the first file)"
    )
    parser.add_argument("--step", type=_number, metavar="N", help="keep only the step that the profiler marked with ProfilerStep#N")
    parser.add_argument("--from", dest="begin", **of_time, help="start of the time window, such as 12.5ms after the first event")
    parser.add_argument("--to", dest="end", **of_time, help="end of the time window")
    parser.add_argument("--kernels", action="store_true", help="list all work on devices by name, not only the longest")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the graph as JSON to this file; - is standard output")
    parser.add_argument(
        "--named",
        type=Path,
        metavar="FILE",
        help="write a copy of an ONNX model whose operators have the names of the graph, for quantisers",
    )
    parser.set_defaults(command="import")


def nanoseconds_of(text: str) -> int:
    """A time such as `12.5ms`, to the nanosecond."""
    try:
        exact = exact_quantity(text, "time") * 10**9
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
    if not 0 <= exact <= _LONGEST or exact != int(exact):
        raise ArgumentTypeError(f"{text!r} is no whole number of ns from the first event on")
    return int(exact)


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > len(str(_LONGEST)):
        raise ArgumentTypeError(f"{text[:40]!r} is no number of a step (a whole number from 0 is needed)")
    return int(text)


# What `export` takes.

JOBS = ("slurm", "pytorchjob", "jobset")
EDITORS = ("vscode", "neovim", "helix", "modeline")
STACKS, MODELS, PLACEMENTS = ("megatron", "torchtitan", "deepspeed", "fsdp"), ("lp", "mps", "cpsat"), ("devices", "split")
CERTIFICATE, VIPR, TRACE, CHAKRA, GRAPH = "certificate", "vipr", "perfetto", "chakra", "graph"
REPLICAS, SHARDS, SCHEDULE, POLICY = WRITTEN = "replicas", "plan", "schedule", "policy"
STRATEGIES, MODELOPT, TORCHAO = QUANTISED = ("strategies", "modelopt", "torchao")
SERVERS = ("vllm", "sglang", "trtllm", "dynamo")
ANONYMOUS, DRAWN, PYTORCH = COPIES = ("anonymous", "drawn", "pytorch")


def add_export(parser: ArgumentParser, share: Callable[[str], float], settings: str) -> None:
    """All of it; `share` reads one, and `settings` say what `--set` is, as for all commands."""
    parser.add_argument("file", type=Path, help="a result that `solve --out` wrote; for a model, a question will do")
    parser.add_argument(
        "--as",
        dest="stack",
        choices=(*STACKS, *MODELS, *PLACEMENTS, *QUANTISED, *SERVERS, *WRITTEN, CERTIFICATE, VIPR, TRACE, CHAKRA, GRAPH, *COPIES),
        help="settings of a training stack for the plan (default: that of the question, else megatron), or the integer model as a file for "
        "other solvers; a placement as the device of each node, or as a split that the programs of its inputs judge; the strategy of "
        "each layer as JSON, or as a recipe of NVIDIA's Model-Optimizer or a configuration of torchao; instances, replicas of each "
        "kind of device, or nodes with their layers, as JSON; shards of embedding tables as JSON in TorchRec's terms (plan); a schedule "
        "of memory as JSON, or "
        "as policies of torch.utils.checkpoint (policy); "
        "workers of a serving plan as command lines of vLLM, SGLang or TensorRT-LLM, as a manifest of NVIDIA Dynamo for Kubernetes "
        "(dynamo), or as JSON (replicas); "
        "strategies of operators, or joint designs of one transformer, as a certificate that "
        "solvers/standalone.py checks without this package; a tree about an integer model as a certificate for any checker of VIPR "
        "1.0; or what is done when, as a trace for ui.perfetto.dev; or a Chakra trace of each device of a plan, which ASTRA-sim runs; "
        "or the graph of what a benchmark runs, or of a trace with its changes; or a graph of a trace without names, or "
        "drawn with the same statistics, to be shared, or as a script of PyTorch operations that runs its device work",
    )
    job = "of a training stack: a job that runs it, as a script for sbatch or a resource of Kubernetes, with torchrun, steps and data"
    parser.add_argument("--job", choices=JOBS, help=job)
    parser.add_argument("--set", dest="settings", action=Settings, default=[], metavar="KEY=VALUE", help=f"of a model: {settings}")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="PATH",
        help="of a model: the file, or a folder for it (default: this folder); of Chakra: a new folder or a .tar; of a certificate: the "
        "file, packed where it ends in .gz, and of all else but settings of a stack (default: print it)",
    )
    parser.add_argument(
        "--within",
        type=share,
        metavar="SHARE",
        help="of a model: keep plans that may be up to so much slower than the best design (default: 0, those that may be as fast)",
    )
    parser.add_argument("--time-limit", metavar="TIME", help="of a model: refine it for so long at most, for example 60s")
    parser.add_argument("--workload", metavar="NAME", help="which of several workloads to launch, or to model")
    parser.add_argument("--key", type=Path, metavar="FILE", help="of a trace without names: write what each name stands for, to be kept")
    parser.add_argument("--seed", type=int, default=0, help="of a drawn trace (default: 0)")
    parser.set_defaults(command="export")


# What the command line takes: sub-commands, their arguments and their help.

_EXIT_CODES = """exit codes: 0 answered and verified · 1 internal error · 2 usage, or an engine that does not answer · 3 invalid file ·
10 time limit and no design · 11 not proved under --strict · 12 comparison ended early ·
13 expectations of a study failed · 20 proven infeasible · 30 verification failed"""


_INVALID = re.compile(r"(.*: )invalid choice: '?(.*?)'? \(choose from (.*)\)")
"""How argparse refuses a word that is none of those which it knows."""


def _no_choice(where: str, given: str, known: list[str]) -> str:
    """That a word is none of the choices, with the nearest one."""
    guess = nearest(given, known)
    near = f"did you mean {guess[0]}? It is " if guess else ""
    return f"{where.replace('COMMAND: ', '')}{given!r} is unknown ({near}one of {', '.join(known)})"


def _plain_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number (write it without a unit, such as 10)") from None


def _rate(text: str) -> float:
    return _plain_number(text.removesuffix("/s"))


_FILES = (".yaml", ".yml", ".json", ".csv", ".onnx", ".pt2", ".html")


class _Parser(argparse.ArgumentParser):
    """Refuses arguments in one sentence that names the option, instead of printing all of the usage."""

    def error(self, message: str) -> NoReturn:
        text = message.removeprefix("argument ")
        if invalid := _INVALID.fullmatch(text):
            text = _no_choice(invalid[1], invalid[2], re.findall(r"'([^']*)'", invalid[3]))
        option = text.partition(":")[0].partition("/")[0]
        if text.endswith("expected one argument") and self._is_alone(option):
            text = f"{option}: its value is missing (see `{self.prog} --help`)"
        elif text.endswith("expected one argument"):
            value = self._given[self._given.index(option) + 1] if option in self._given else ""
            below = f"{value!r} is below zero, and no such amount is (write {value.lstrip('-')})"
            text = f"{option}: {below}" if value[1:2].isdigit() else f"{text} (write {option}=VALUE where the value begins with -)"
        self.exit(2, f"{self.prog}: {text}{f' (see `{self.prog} --help`)' if text.startswith('the following') else ''}\n")

    _given: list[str] = []  # noqa: RUF012 - replaced, not changed

    def _is_alone(self, option: str) -> bool:
        """Whether nothing that may be its value follows an option."""
        following = self._given[self._given.index(option) + 1 :] if option in self._given else ["-"]
        return not following or following[0] in self._option_string_actions

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # noqa: ANN401 - as the class above declares it
        self._given = list(sys.argv[1:] if args is None else args)
        known, others = super().parse_known_args(args, namespace)
        if others and self._subparsers is None:  # here, as the parser above knows no option of a command
            self.error(self._unknown(others[0]))
        return known, others

    def _unknown(self, text: str) -> str:
        if not text.startswith("-"):
            if Path(text).suffix in _FILES:
                return f"{text!r} is one file too many ({self.prog} takes one at a time)"
            return f"{text!r} is one argument too many (write a value without spaces, such as 30d; see `{self.prog} --help`)"
        name = text.partition("=")[0]
        if name == "--verbose" and self.prog.endswith(" plan"):
            return "--verbose: plan has none (keep the question by --save run.yaml, then `crossopt solve run.yaml --verbose`)"
        guess = nearest(name, [option for option in self._option_string_actions if option.startswith("--")])
        others = [command for command, parser in _commands().items() if name in parser._option_string_actions]
        remedy = f"did you mean {guess[0]}?" if guess else f"it is one of `crossopt {others[0]}`" if len(others) == 1 else ""
        return f"{name}: there is no such option ({remedy or f'see `{self.prog} --help`'})"


def remedies_of(command: str, engine: str | None = None) -> str:
    """What the options of a command offer where a search, by this engine, found nothing in time; empty where there are none."""
    options = {option: action for action in _commands()[command]._actions for option in action.option_strings}
    offered = {
        "increase --time-limit": "--time-limit" in options,
        "use --engine auto": engine not in (None, "auto") and "--engine" in options and options["--engine"].default == "auto",
        "leave fewer choices open": "--set" in options and options["--set"].metavar == "KEY=VALUE",
    }
    *others, last = [text for text, offers in offered.items() if offers] or [""]
    return "".join(f"{text}, " for text in others) + f"{'or ' if others else ''}{last}"


def _commands() -> Mapping[str, argparse.ArgumentParser]:
    """The parser of each command."""
    actions = (action for action in parser_of_commands()._actions if isinstance(action, argparse._SubParsersAction))
    return next(actions).choices


@cache
def parser_of_commands() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="crossopt",
        description="Which chip, memory and parallel plan train this model best, how far is anything else from it, and how do you know?",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_version(parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _add_plan(commands.add_parser("plan", help="find the best plan for a training run from the command line", epilog=_EXIT_CODES))
    _add_place(commands.add_parser("place", help="choose the device of each operator of a network in one line", epilog=_EXIT_CODES))
    _add_quantize(
        commands.add_parser(
            "quantize",
            help="choose a number format, or a split over devices, for each layer of a network from the command line",
            epilog=_EXIT_CODES,
        )
    )
    recomputed = "choose what a training step computes again so that a network fits into memory, from the command line"
    _add_checkpoint(commands.add_parser("checkpoint", help=recomputed, epilog=_EXIT_CODES))
    _add_embed(commands.add_parser("embed", help="place embedding tables on devices from the command line", epilog=_EXIT_CODES))
    _add_serve(commands.add_parser("serve", help="find the best way to serve a model from the command line", epilog=_EXIT_CODES))
    _add_solve(commands.add_parser("solve", help="find the best design of a question, with its proof", epilog=_EXIT_CODES))
    _add_validate(commands.add_parser("validate", help="check a question without solving it"))
    _add_evaluate(commands.add_parser("evaluate", help="price one design and print its breakdown and limits"))
    _add_check(commands.add_parser("check", help="verify a saved result from its question"))
    _add_explain(commands.add_parser("explain", help="explain conflicts, binding limits, and the cost of other choices"))
    _add_compare(commands.add_parser("compare", help="compare the optimum with heuristics and rules of thumb"))
    add_sweep(commands.add_parser("sweep", help="run a study on several processes, with resumable results in a folder"))
    _add_accuracy(commands.add_parser("accuracy", help="predict measured training runs and report the model's error"))
    _add_calibrate(commands.add_parser("calibrate", help="fit the constants of a kind of device to measured step times"))
    add_import(commands.add_parser("import", help="read a network, or a trace of a job, as a graph"), _whole_number)
    add_export(
        commands.add_parser("export", help="write the plan of a result as settings of a training stack, or a model as a file"),
        _gap,
        _SET_HELP,
    )
    _add_report(commands.add_parser("report", help="write a saved result as a self-contained HTML page"))
    _add_ui(commands.add_parser("ui", help="open a local page that edits a question, prices designs, solves, and draws results"))
    _add_list(commands.add_parser("list", help="list the names that questions can use"))
    _add_grade(commands.add_parser("grade", help="grade a submission to an assignment of the course"))
    _add_course(commands.add_parser("course", help="list the assignments of the course, or write the handouts"))
    _add_compile(commands.add_parser("compile", help="compile functions ahead of the first solve of an installation"))
    _add_schema(commands.add_parser("schema", help="print where the JSON schemas of files are, or set up an editor to check them"))
    _add_completion(commands.add_parser("completion", help="print a script that completes commands, options and names in a shell"))
    return parser


def _add_version(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--version", action="version", version=f"crossopt {__version__}", help="show the version and exit")


def _add_question(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="the question, a YAML file")
    _add_settings(parser)


def _add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--set", dest="settings", action=Settings, default=[], metavar="KEY=VALUE", help=_SET_HELP)
    parser.add_argument("--workload", metavar="NAME", help="use only this one of several workloads, with its own chip")


_SET_HELP = (
    "fix a choice, such as tensor=8 or compute_area='300 mm^2', or override any value by its path, such as cluster.devices=128; "
    "KEY=null removes a value"
)


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the result as JSON instead of text")
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write the result as JSON to this file; - is standard output")


def _add_plan(parser: argparse.ArgumentParser) -> None:
    """Arguments of `plan`."""
    model = (
        "model to train: a name from `crossopt list workloads`, its name on the hub such as Qwen/Qwen3-32B, or the path of a config.json"
    )
    parser.add_argument("model", metavar="MODEL", help=model)
    devices = "devices: COUNTxDEVICE such as 256xh100, or several to compare, separated by commas"
    parser.add_argument("--gpus", required=True, metavar="DEVICES", help=devices)
    parser.add_argument("--tokens", metavar="N", help="total number of training tokens, such as 15T; the answer then shows days")
    parser.add_argument("--context", metavar="N", help="tokens per sample, such as 8k for 8,192 (default: the model's)")
    batch = "batch size in samples such as 512, or in tokens such as 4M (default: about four million tokens)"
    parser.add_argument("--batch", metavar="N", help=batch)
    parser.add_argument(
        "--precision", metavar="NAME", help="number format: bf16, fp16, fp8, ... (default: bf16, or fp16 on devices without it)"
    )
    parser.add_argument("--stack", metavar="NAME", help="training stack: megatron-core (default on NVIDIA), torchtitan, deepspeed or fsdp")
    parser.add_argument("--deadline", metavar="TIME", help="longest duration of the run, such as 90d")
    rent = "USD per device and hour: 2.5, or h100=2.5,b200=4 (default: list prices of `crossopt list hardware`, if any)"
    parser.add_argument("--rent", metavar="MONEY", help=rent)
    mode = parser.add_mutually_exclusive_group()
    modes = {
        "fastest": "minimise the time on all devices (default)",
        "cheapest": "minimise the cost over all devices, half of them, and so on, and the fewest that meet the deadline",
        "fewest": "minimise the number of devices that meet the deadline, by bisection over whole nodes",
    }
    for name, text in modes.items():
        mode.add_argument(f"--{name}", dest="mode", action="store_const", const=name, help=text)
    parser.add_argument("--save", type=Path, metavar="FILE.yaml", help="write the question as a file, for `solve` and all other commands")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the result as JSON to this file")
    parser.add_argument("--json", action="store_true", help="print all devices that were compared, and the result, as JSON instead of text")
    parser.add_argument("--time-limit", metavar="TIME", help="for each number of devices (default: 60s)")
    parser.set_defaults(command="plan", mode="fastest")


_NETWORK_HELP = "the network: an ONNX model (.onnx), a file of torch.export (.pt2), or a graph that `crossopt import` wrote"


def _add_place(parser: argparse.ArgumentParser) -> None:
    """Arguments of `place`."""
    parser.add_argument("model", type=Path, metavar="MODEL", help=_NETWORK_HELP)
    parser.add_argument("--devices", required=True, metavar="COUNTxNAME", help="accelerators of one kind, such as 4xh100")
    precision = "format of the values: bf16 (default), fp16 or fp32"
    parser.add_argument("--precision", choices=("bf16", "fp16", "fp32"), metavar="FORMAT", help=precision)
    parser.add_argument("--training", action="store_true", help="forward and backward pass (default: forward only)")
    problem = "throughput (default), the time of the busiest device, or latency, the time of one sample"
    parser.add_argument("--problem", choices=("throughput", "latency"), metavar="HOW", help=problem)
    contiguous = "contiguity of a device's operators: stages (default), convex or no"
    parser.add_argument("--contiguous", choices=("stages", "convex", "no"), metavar="HOW", help=contiguous)
    transfers = "transfers as calls that occupy a device (default), or overlapped with computation"
    parser.add_argument("--transfers", choices=("calls", "overlapped"), metavar="HOW", help=transfers)
    parser.add_argument("--memory", metavar="SIZE", help="memory of one accelerator, such as 24GiB (default: the device's)")
    bandwidth = "bandwidth between an accelerator and the host, such as 25GB/s (default: the device's own link)"
    parser.add_argument("--bandwidth", metavar="SPEED", help=bandwidth)
    axes = "the length of an open axis of the network, such as batch=32"
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="AXIS=LENGTH", help=axes)
    parser.add_argument("--save", type=Path, metavar="FILE.yaml", help="write the question as a file, with its graph beside it")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the result as JSON to this file")
    parser.add_argument("--verbose", action="store_true", help="print the full result")
    parser.add_argument("--time-limit", metavar="TIME", help="time limit (default: 300s)")
    parser.set_defaults(command="place")


def _add_checkpoint(parser: argparse.ArgumentParser) -> None:
    """Arguments of `checkpoint`."""
    parser.add_argument("model", type=Path, metavar="MODEL", help=_NETWORK_HELP)
    parser.add_argument("--hardware", required=True, metavar="NAME", help="a device of `crossopt list hardware`, such as a100-80g")
    parser.add_argument("--memory", metavar="SIZE", help="memory of the device, such as 24GiB (default: the device's)")
    share = "budget as a share of the peak without repetitions, such as 60%% (default: the memory less weights, gradients and optimizer)"
    parser.add_argument("--share", metavar="SHARE", help=share)
    precision = "format of the values: bf16 (default), fp16 or fp32"
    parser.add_argument("--precision", choices=("bf16", "fp16", "fp32"), metavar="FORMAT", help=precision)
    parser.add_argument("--repetitions", metavar="N", help="the most that an operator is computed again (default: 1)")
    largest = "find the greatest length of this open axis that fits, such as batch, and answer for it"
    parser.add_argument("--largest", metavar="AXIS", help=largest)
    policy = "write policies of torch.utils.checkpoint to this file, and take only schedules that these run"
    parser.add_argument("--policy", type=Path, metavar="FILE.py", help=policy)
    axes = "the length of an open axis of the network, such as batch=32"
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="AXIS=LENGTH", help=axes)
    parser.add_argument("--save", type=Path, metavar="FILE.yaml", help="write the question as a file, with its graph beside it")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the result as JSON to this file")
    parser.add_argument("--verbose", action="store_true", help="print the full result")
    parser.add_argument("--time-limit", metavar="TIME", help="time limit (default: 300s, and 150s before for lengths that --largest tries)")
    parser.set_defaults(command="checkpoint")


def _add_quantize(parser: argparse.ArgumentParser) -> None:
    """Arguments of `quantize`."""
    parser.add_argument("model", type=Path, metavar="MODEL", help=_NETWORK_HELP)
    device = "a device of `crossopt list hardware`, such as h100-sxm, or the path of a file of your own"
    parser.add_argument("--hardware", required=True, metavar="NAME", help=device)
    parser.add_argument("--formats", default="", metavar="NAMES", help="formats offered to each layer, such as fp8,int8")
    devices = "choose for each layer how it is split over this many devices, too (formats may then be left out)"
    parser.add_argument("--devices", metavar="N", help=devices)
    splits = "splits offered to each layer (default: batch,features,inputs,space)"
    parser.add_argument("--splits", metavar="NAMES", help=splits)
    parser.add_argument("--base", metavar="NAME", help="format of everything else, and of activations in memory (default: bf16)")
    peak = "peak of a format that the device's file lacks, such as int4=2PFLOP/s; repeatable"
    parser.add_argument("--peak", action="append", default=[], metavar="FORMAT=SPEED", help=peak)
    losses = "quality loss of each layer in each format: CSV with the columns layer, format and quality"
    parser.add_argument("--losses", type=Path, metavar="FILE.csv", help=losses)
    template = "write that file with all layers and formats, and nothing in the column quality, instead of an answer"
    parser.add_argument("--losses-template", type=Path, metavar="FILE.csv", help=template)
    budget = "upper limit of a figure, such as quality=0.5, size=12MB or time=2ms; repeatable"
    parser.add_argument("--budget", action="append", default=[], metavar="FIGURE=AMOUNT", help=budget)
    figures = "figure to minimise: time (default), energy, size, memory, bops or quality"
    parser.add_argument("--minimize", default="time", metavar="FIGURE", help=figures)
    parser.add_argument("--training", action="store_true", help="forward and backward pass (default: forward only)")
    parser.add_argument(
        "--tie",
        metavar="HOW",
        help="same format for corresponding layers of repeated blocks (blocks), or for layers of one type (operators)",
    )
    axes = "the length of an open axis of the network, such as batch=32"
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="AXIS=LENGTH", help=axes)
    parser.add_argument("--save", type=Path, metavar="FILE.yaml", help="write the question as a file, with its graph beside it")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the result as JSON to this file")
    parser.add_argument("--verbose", action="store_true", help="print the full result")
    parser.add_argument("--time-limit", metavar="TIME", help="time limit (default: 300s)")
    parser.set_defaults(command="quantize")


def _add_embed(parser: argparse.ArgumentParser) -> None:
    """Arguments of `embed`."""
    tables = "JSON or CSV list of tables, by our keys, those of TorchRec's configurations, or those of dlrm_datasets"
    parser.add_argument("tables", metavar="TABLES", help=tables)
    for option, metavar, text in (
        ("devices", "N", "devices (default: as the list says)"),
        ("devices-per-node", "N", "devices of a node (default: as the list says, or 8)"),
        ("hbm", "SIZE", "memory of a device, such as 80GB (default: as the list says, or 32 GiB)"),
        ("ddr", "SIZE", "host memory for a device (default: as the list says, or 128 GiB)"),
        ("ssd", "SIZE", "storage for a device (default: 2 TiB)"),
        ("reserve", "SHARE", "share of HBM that stays free (default: none; TorchRec's planner keeps 15%%)"),
        ("dense", "SIZE", "HBM of the dense part on every device (default: none)"),
        ("batch", "N", "samples of a device (default: as the list says, or 512)"),
        ("sharding", "NAMES", "table, row, column, table-row, table-column, grid, data (default: all)"),
        ("kernel", "NAMES", "fused, fused_uvm, fused_uvm_caching, key_value, dense (default: all)"),
        ("columns", "NUMBERS", "equal pieces of the columns (default: 1,2,4)"),
        ("narrowest", "N", "columns of a piece at least (default: 128)"),
        ("cache", "SHARES", "shares of the rows that fused_uvm_caching holds in HBM (default: 0.1,0.2,0.4)"),
        ("optimizer", "NAME", "none, sgd, rowwise_adagrad (default) or adam"),
        ("minimize", "GOAL", "slowest_device (default), step: the sum of the slowest of each phase, or fewest_devices"),
    ):
        parser.add_argument(f"--{option}", metavar=metavar, help=text)
    parser.add_argument("--save", type=Path, metavar="FILE.yaml", help="write the question as a file")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the result as JSON to this file")
    parser.add_argument("--verbose", action="store_true", help="print the full result")
    parser.add_argument("--time-limit", metavar="TIME", help="time limit (default: 30s)")
    parser.set_defaults(command="embed")


def _add_serve(parser: argparse.ArgumentParser) -> None:
    """Arguments of `serve`."""
    model = "model to serve: a name from `crossopt list workloads`, its name on the hub, or the path of a config.json"
    parser.add_argument("model", metavar="MODEL", help=model)
    parser.add_argument(
        "--gpus",
        required=True,
        metavar="DEVICES",
        help="devices at most: COUNTxDEVICE such as 8xh100 or 8xl4.yaml, several kinds by commas",
    )
    parser.add_argument("--input", required=True, metavar="N", help="tokens of a prompt, such as 4000 or 4k (4,096)")
    parser.add_argument("--output", required=True, metavar="N", help="tokens of an answer")
    parser.add_argument("--cached", metavar="N", help="tokens of a prompt that are in the cache already (prefix caching)")
    parser.add_argument("--context", metavar="N", help="longest context of the model, such as 40960: longer requests are refused")
    parser.add_argument("--rate", type=_rate, metavar="N", help="requests a second that are served at least")
    parser.add_argument("--ttft", metavar="TIME", help="limit of the time to first token, such as 300ms")
    parser.add_argument("--tpot", metavar="TIME", help="limit of the time per output token, such as 10ms")
    whose = "whose latencies keep the limits: p90, p95 (default) or p99 of random arrivals, or the mean without queues"
    parser.add_argument("--at", metavar="LEVEL", help=whose)
    parser.add_argument(
        "--engine", default="vllm", metavar="NAME", help="serving engine: vllm (default), sglang, trtllm, or eager without graphs"
    )
    formats = (
        "formats of weights offered: bf16, fp8, fp8-block, fp4, int8, int4 (default: fp8 where the device has it; quality is not priced)"
    )
    parser.add_argument("--weights", metavar="NAMES", help=formats)
    parser.add_argument("--cache", metavar="NAMES", help="formats of the cache offered: bf16, fp8 (default: bf16; quality is not priced)")
    parser.add_argument("--mode", metavar="NAMES", help="prefill and decode together, apart, or both offered (default)")
    parser.add_argument(
        "--data", metavar="N", help="groups of ranks with attention of their own offered, such as 1,8 (models with experts; MLA: default)"
    )
    drafts = "speculative decoding: mean tokens of a step by drafted ones, as measured, such as 1:1.8,3:2.6"
    parser.add_argument("--drafts", metavar="PAIRS", help=drafts)
    shapes = "one: all workers of a part are alike (default); any: also several shapes (--at mean alone, and its default)"
    parser.add_argument("--shapes", metavar="MIX", help=shapes)
    goal = "throughput (default): most requests a second; devices: fewest for --rate; cost: least money for --rate, or for an output token"
    goals = parser.add_mutually_exclusive_group()
    goals.add_argument("--minimize", metavar="GOAL", help=goal)
    for name, aim in (("fewest", "devices"), ("cheapest", "cost")):
        goals.add_argument(f"--{name}", dest="minimize", action="store_const", const=aim, help=f"--minimize {aim}")
    parser.add_argument("--rent", metavar="MONEY", help="USD per device and hour (default: the list price, if any)")
    lost = "share of the rate of {} workers that is reached (default: 1; AIConfigurator: {})"
    parser.add_argument("--prefill-share", type=_plain_number, metavar="SHARE", help=lost.format("prefill", 0.9))
    parser.add_argument("--decode-share", type=_plain_number, metavar="SHARE", help=lost.format("decode", 0.92))
    queues = "time to first token over that without queues (default: 1; AIConfigurator: 1.8)"
    parser.add_argument("--ttft-factor", type=_plain_number, metavar="FACTOR", help=queues)
    parser.add_argument("--save", type=Path, metavar="FILE.yaml", help="write the question as a file, for `solve` and all other commands")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the result as JSON to this file")
    parser.add_argument("--verbose", action="store_true", help="print the full result")
    parser.add_argument("--time-limit", metavar="TIME", help="time limit (default: 300s)")
    parser.set_defaults(command="serve")


_ENGINE_HELP = (
    "auto (default), boxes, exhaustive, milp, cpsat; without a proof: the rules recipes, expert, fsdp, pipedream-flush, the searchers "
    "descent, genetic, gradient, random, alternating, with optuna nsga-ii, tpe, cma-es, bayesian, and plan-only, "
    "hardware-only; megatron is an alias of expert, deepflow of gradient; "
    "of graphs: auto, portfolio, stages, latency; of stages and chains: auto, "
    "cuts; of bandwidths: auto, equal; of collectives: auto, search, themis, natural; of changes of traces: auto, enumerate, "
    "greedy; of benchmarks: auto, exhaustive, rounding, apportion, largest; of instances: auto, program, bisection, highs, cpsat, "
    "greedy; of fleets: auto, tree, slices, cheapest; of pipelines: auto, exhaustive, stages, cpsat; of strategies: see there"
)


_STRATEGIES = (
    "for a problem in .json or .json.gz, or in YAML of `kind: sharding`; --engine is auto, exhaustive, milp, "
    "cpsat, search, weak, greedy or local; --memory is the limit at all times"
)
FORMS = ("strong", "weak", "table", "classic", "log")
STARTS = ("recipe", "cold")


def _add_solve(parser: argparse.ArgumentParser) -> None:
    _add_version(parser)  # of the program `solve` too
    _add_question(parser)
    _add_output(parser)
    parser.add_argument("--verbose", action="store_true", help="print the full result: time breakdown, limits, baselines")
    parser.add_argument("--engine", default="auto", metavar="NAME", help=_ENGINE_HELP)
    parser.add_argument("--time-limit", metavar="TIME", help="time limit, for example 60s or 5min (default: 6h)")
    parser.add_argument(
        "--gap", type=_gap, default=0.0, metavar="GAP", help="stop at this relative gap between value and bound, for example 0.1%%"
    )
    parser.add_argument("--form", choices=FORMS, metavar="FORM", help=f"integer formulation for milp and cpsat: {', '.join(FORMS)}")
    parser.add_argument(
        "--workers",
        type=_positive,
        metavar="N",
        help="threads of milp, cpsat and engines for placements (default: 1, with reproducible answers)",
    )
    parser.add_argument(
        "--pareto",
        metavar="A,B",
        help="Pareto front of two objectives, such as step_time,cost_per_token, or peak,extra_time; each point with its proof",
    )
    parser.add_argument(
        "--against", type=Path, metavar="FILE", help="another question, or a saved result: print the differences in question and answer"
    )
    parser.add_argument("--points", type=_positive, default=10, metavar="N", help="approximate number of points of the front (default: 10)")
    parser.add_argument("--log", type=Path, metavar="FILE", help="write progress to this file, as JSON lines")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--strict", action="store_true", help="exit with 11 if the answer is not proved")
    _add_placement(parser.add_argument_group("placement", "for a graph in a .json file or in YAML of `kind: placement`"))
    _add_pipeline(parser.add_argument_group("pipeline", "for a profile in a .txt file"))
    _add_stages(parser.add_argument_group("stages", "for a .json file with TMPCs"))
    parser.add_argument_group("strategies", _STRATEGIES)
    parser.set_defaults(command="solve")


def _add_placement(group: "argparse._ArgumentGroup") -> None:
    problem = "minimise the time of the busiest device (throughput, default) or of one sample (latency, any number of CPUs)"
    group.add_argument("--problem", choices=("throughput", "latency"), metavar="WHAT", help=problem)
    group.add_argument(
        "--pieces", type=_positive, metavar="Q", help="subgraphs that an accelerator runs one after another, for latency (default: 1)"
    )
    contiguity = "contiguity: stages in data order (default), convex: no path leaves a device and re-enters it, or no: unrestricted"
    group.add_argument("--contiguous", choices=("stages", "convex", "no"), metavar="HOW", help=contiguity)
    transfers = "transfers as calls that occupy a device (default), or overlapped with computation"
    group.add_argument("--transfers", choices=("calls", "overlapped"), metavar="HOW", help=transfers)
    devices = "number of accelerators (default: the file's); for a profile also 4x8: 8 groups of 4 (default: 4)"
    group.add_argument("--devices", type=_levels, metavar="N", help=devices)
    group.add_argument("--cpus", type=_whole_number, metavar="N", help="number of CPUs (default: the file's)")
    group.add_argument("--memory", metavar="SIZE", help="memory of one accelerator, such as 16GiB (default: the file's)")
    group.add_argument("--edge-unit", choices=("ms", "s"), metavar="UNIT", help="unit of edge costs: ms (default) or s")


def _add_pipeline(group: "argparse._ArgumentGroup") -> None:
    bandwidth = "bandwidth between devices, such as 25GiB/s; for a profile one for each level, innermost first, such as 6e9,1e9"
    group.add_argument("--bandwidth", metavar="SPEED", help=bandwidth)
    group.add_argument("--straight", action="store_true", help="use one replica for each stage")
    group.add_argument("--compression", metavar="R", help="divide the bytes of transferred activations by R (default: 1)")
    group.add_argument("--compatible", action="store_true", help="use the cuts and costs of the public optimizer of PipeDream")


def _add_stages(group: "argparse._ArgumentGroup") -> None:
    group.add_argument("--microbatches", type=_whole_number, metavar="N", help="microbatches per batch (default: the file's)")
    group.add_argument("--without", metavar="PARTS", help="exclude some of data, tensor and recompute, separated by commas")
    group.add_argument("--time-unit", choices=("s", "ms"), metavar="UNIT", help="unit of the times in the file: s (default) or ms")


def _add_validate(parser: argparse.ArgumentParser) -> None:
    _add_question(parser)
    parser.set_defaults(command="validate")


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    _add_question(parser)
    parser.add_argument("--json", action="store_true", help="print the evaluation as JSON instead of text")
    parser.set_defaults(command="evaluate")


def _add_check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        type=Path,
        help="a result that `solve --out` wrote, a .vipr of `export --as vipr`, or a folder or .tar of `export --as chakra`",
    )
    parser.add_argument("--cross-check", action="store_true", help="bound the designs by boxes too, where a solver's word is the proof")
    of = "of traces: how long they take on a network of ASTRA-sim's, by its"
    parser.add_argument("--network", type=Path, metavar="FILE.yml", help=f"{of} network file, with --system")
    parser.add_argument("--system", type=Path, metavar="FILE.json", help=f"{of} system file, with --network")
    parser.add_argument("--remote-memory", type=Path, metavar="FILE.json", help=f"{of} remote memory file, with --network")
    parser.set_defaults(command="check")


def _add_explain(parser: argparse.ArgumentParser) -> None:
    _add_question(parser)
    parser.add_argument("--force", action=Settings, default=[], metavar="KEY=VALUE", help="also show the best design with this choice")
    parser.add_argument("--near", type=_gap, metavar="GAP", help="also say what all designs within this gap have in common, such as 1%%")
    parser.add_argument("--time-limit", metavar="TIME", help="for each of the questions that are solved, and for --near, for example 60s")
    relaxation = (
        "instead: the fractions that the relaxation of the integer model takes, and the tree that closes its gap (--near: plans so near)"
    )
    constants = "instead: the proven optimum with each constant at either end of its range (--time-limit: for all of them together)"
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--relaxation", action="store_true", help=relaxation)
    instead.add_argument("--constants", action="store_true", help=constants)
    of = "of --relaxation and --constants: also"
    parser.add_argument("--out", type=Path, metavar="FILE", help=f"{of} write it as JSON to this file; - is standard output")
    parser.add_argument("--svg", type=Path, metavar="FILE", help=f"{of} draw it into this file; - is standard output")
    parser.add_argument("--json", action="store_true", help="print what is explained as JSON instead of text, in SI units")
    parser.set_defaults(command="explain")


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="questions of joint design, or one question of another kind")
    _add_settings(parser)
    _add_compared(parser)
    group = parser.add_argument_group("placement", "for a graph in a .json file or in YAML of `kind: placement`")
    _add_placement(group)
    group.add_argument("--split", type=Path, action="append", default=[], metavar="FILE", help="further placement to evaluate; repeatable")
    parser.add_argument(
        "--known", type=Path, metavar="FILE", help="of strategies: a CSV file with instance and best_known, shown beside them"
    )
    parser.set_defaults(command="compare")


KERNELS = ("products", "attention", "collectives", "experts")
SETS = ("megatron-core", "megatron-lm", "torchtitan", "deepspeed", "fsdp")
"""Stacks of which a device may have a set of constants."""


def _add_accuracy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="measured runs or kernels, a CSV file with one a row")
    kinds = ("source", "gpu", "model", "nodes", "set", "tensor", "pipeline", "microbatch")
    parser.add_argument("--by", choices=kinds, default="source", help="group errors by this (default: source)")
    parser.add_argument("--worst", type=_whole_number, default=5, metavar="N", help="list the N runs with the largest errors (default: 5)")
    parser.add_argument("--json", action="store_true", help="print all figures and runs as JSON instead of text")
    forms = ("text", "html", "latex", "csv", "markdown")
    parser.add_argument("--as", dest="form", choices=forms, default="text", help="of runs: a page, or tables for papers and spreadsheets")
    parser.add_argument("--out", type=Path, metavar="FILE", help="of --as: the file (default: print it)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="also draw predicted over measured times as SVG into this file")
    parser.add_argument("--of", choices=KERNELS, help="measured kernels of this kind (default: what the columns say)")
    parser.add_argument(
        "--constants",
        action="append",
        default=[],
        metavar="GPU=FILE",
        help="of kernels: price those of this device by what `calibrate --of` printed (default: by the device's file)",
    )
    parser.set_defaults(command="accuracy")


def _add_calibrate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, nargs="+", help="measured step times or kernels, CSV files as for `accuracy`")
    parser.add_argument(
        "--gpu",
        required=True,
        metavar="NAME",
        help="a device of `crossopt list hardware`; runs of all devices of its kind are used, and its own kernels",
    )
    parser.add_argument("--of", choices=KERNELS, help="fit constants of measured kernels of this kind (default: what the columns say)")
    parser.add_argument(
        "--stack",
        action="append",
        default=[],
        choices=SETS,
        help="fit what differs for this stack, the fewest constants that runs left out ask for (again: with runs of these stacks, too)",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the fitted sections of the registry file here")
    parser.set_defaults(command="calibrate")


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", type=Path, nargs="+", metavar="RESULT", help="results that `solve --out` wrote, all on one page")
    kinds = ("html", "latex", "csv", "markdown", "text", "runs", "svg", "pdf")
    parser.add_argument(
        "--as",
        dest="form",
        choices=kinds,
        help="a page (the default where the ending of --out says no other form), or tables for papers and spreadsheets; "
        "runs: of comparisons, CSV with one run a row; "
        "svg, pdf: each picture as a file of its own, OUT-TITLE.svg (pdf needs `pip install 'crossopt[figures]'`)",
    )
    where = "the file (default: RESULT.html, of several results.html, in this folder; .tex, .csv, .md, .txt); - is standard output"
    parser.add_argument("--out", type=Path, metavar="FILE", help=where)
    parser.add_argument("--check", action="store_true", help="repeat the proofs (default: show the status in the files, not re-verified)")
    parser.set_defaults(command="report")


def _add_ui(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, nargs="?", help="a question in YAML, or the name of one, which the page opens")
    parser.add_argument("--port", type=_whole_number, default=0, metavar="N", help="port to listen on (default: any free port)")
    parser.add_argument("--no-browser", action="store_true", help="print the address without opening a browser")
    parser.set_defaults(command="ui")


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kind",
        nargs="?",
        choices=("hardware", "technologies", "workloads", "instances", "operators"),
        help="what to list (default: the number of each)",
    )
    parser.add_argument("--show", metavar="NAME", help="print the file of this name, as a template")
    parser.add_argument("--sheet", metavar="NAME", help="print the data sheet of a device, without constants fitted to runs and kernels")
    parser.add_argument("--json", action="store_true", help="print names and descriptions as JSON instead of text")
    parser.set_defaults(command="list")


def _add_compile(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command="compile")


def _add_schema(parser: argparse.ArgumentParser) -> None:
    form = "print the path of this one alone: question (of any kind), a kind of questions, device, technology or model"
    parser.add_argument("form", nargs="?", metavar="FORM", help=form)
    editor = "print settings for yaml-language-server in this editor; modeline: the first line of a file, which most editors follow"
    parser.add_argument("--editor", choices=EDITORS, help=editor)
    parser.add_argument(
        "--files", action="append", metavar="GLOB", help="files that it takes for questions (default: *.crossopt.yaml, questions/*.yaml)"
    )
    write = "write the settings into this folder: .vscode/settings.json, .nvim.lua or .helix/languages.toml"
    parser.add_argument("--write", action="store_true", help=write)
    parser.set_defaults(command="schema")


def _add_completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="for bash put `source <(crossopt completion bash)` into ~/.bashrc")
    parser.set_defaults(command="completion")


def _whole_number(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"{text!r} is no count (write a whole number of at most nine digits, such as 5)")
    return int(text)


def _levels(text: str) -> tuple[int, ...]:
    return tuple(_whole_number(part) for part in text.split("x"))


def _positive(text: str) -> int:
    number = _whole_number(text)
    if not number:
        raise argparse.ArgumentTypeError("0 is too few (write 1 or more)")
    return number


def _gap(text: str) -> float:
    number, percent = text.removesuffix("%"), text.endswith("%")
    try:
        gap = float(number) / (100.0 if percent else 1.0)
    except ValueError:
        gap = -1.0
    if not 0.0 <= gap < 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is no gap (write for example 0.1% or 0.001)")
    return gap


_STUDENT_HELP = "name or number of the student, to whom questions of their own are drawn"
_SEED_HELP = "a word that hidden cases are drawn from (default: the variable CROSSOPT_COURSE_SEED, else `practice`)"


def _add_grade(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grade`."""
    parser.add_argument(
        "assignment", help="its number or name, see `crossopt course list`; or the folder of a class, FOLDER/STUDENT/ASSIGNMENT"
    )
    parser.add_argument("submission", type=Path, nargs="?", help="a folder or a .zip with solution.py, or what the assignment names")
    parser.add_argument("--format", choices=("text", "json", "gradescope"), default="text", help="output format (default: text)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write it to this file, such as results/results.json")
    parser.add_argument("--seed", metavar="WORD", help=_SEED_HELP)
    parser.add_argument("--student", metavar="NAME", help=_STUDENT_HELP)
    parser.add_argument("--roster", type=Path, metavar="FILE", help="of a class: CSV with a column `student` (default: FOLDER/roster.csv)")
    parser.add_argument("--assignment", dest="only", metavar="NAME", help="of a class: this one alone, also where FOLDER/STUDENT is it")
    parser.add_argument("--feedback", type=Path, metavar="FOLDER", help="of a class: a text for each student and assignment")
    parser.add_argument("--similar", type=Path, metavar="FILE", help="of a class: pairs of programs that are alike, as CSV")
    parser.add_argument("--board", type=Path, metavar="FILE", help="of a class: who of assignment 8 is nearest to the proved bound")
    parser.add_argument("--jobs", type=int, metavar="N", help="of a class: so many at a time (default: one for each core)")
    parser.add_argument("--unconfined", action="store_true", help="run it without walls: your own program, or a machine to throw away")
    parser.set_defaults(command="grade")


def _add_course(parser: argparse.ArgumentParser) -> None:
    """Arguments of `course`."""
    actions = "list the assignments, write the handouts without solutions, print the question of assignment 8, or write an autograder"
    parser.add_argument("action", choices=("list", "release", "question", "gradescope"), help=actions)
    parser.add_argument("target", type=Path, nargs="?", metavar="TARGET", help="of release: a new folder; of gradescope: a .zip")
    parser.add_argument("--seed", metavar="WORD", help=f"of question and gradescope: {_SEED_HELP}")
    parser.add_argument("--student", metavar="NAME", help=f"of question: {_STUDENT_HELP}")
    parser.add_argument("--roster", type=Path, metavar="FILE", help="of release: also the question of assignment 8 for each student of it")
    parser.add_argument("--assignment", dest="only", metavar="NAME", help="of gradescope: which one it grades")
    parser.add_argument("--unconfined", action="store_true", help="of gradescope: without walls, where the container has no Landlock")
    parser.set_defaults(command="course")


def _add_compared(parser: argparse.ArgumentParser) -> None:
    """Who is asked, how long and how often, and where the runs go."""
    engines = (
        "engines in the order of the columns, separated by commas, as for `solve --engine`; megatron is an alias of expert, deepflow "
        "of gradient (default: auto, every rule, every searcher, hardware-only, plan-only; for a study, its own)"
    )
    limit = "time limit of each run, for example 10s (default: 5s for searchers, none for others; 60s for the proof of a graph)"
    seeds = "run searchers, milp and cpsat with seeds 0 to N-1; figures are the median and the range (default: 1, for a study, its own)"
    parser.add_argument("--engines", metavar="NAMES", help=engines)
    parser.add_argument("--time-limit", metavar="TIME", help=limit)
    start = "of searches on joint designs: the best recipe's design (default), or cold, without any recipe"
    parser.add_argument("--start", choices=STARTS, help=start)
    parser.add_argument("--store", type=Path, metavar="DIR", help="for a study: folder of results; runs in it are not repeated")
    parser.add_argument("--seeds", type=_seeds, metavar="N", help=f"{seeds}; of graphs and strategies only searchers have seeds")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="RUNS.json",
        help="write every run, of other questions the answer and its baselines, as JSON to this file; - is standard output",
    )
    parser.add_argument(
        "--chart", type=Path, metavar="PAGE.html", help="of joint designs: write the comparison as an HTML page to this file"
    )


def _seeds(text: str) -> int:
    if not text.isdecimal() or len(text) > 4:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seeds (write a whole number from 1 to 9999)")
    if not int(text):
        raise argparse.ArgumentTypeError("0 is too few (write 1 or more)")
    return int(text)
