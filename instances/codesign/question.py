"""Reading of joint-design questions: one or several workloads, one or several numbers of devices."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice, product
from json import dumps
from math import prod
from pathlib import Path
from re import fullmatch
from shlex import quote
from typing import Any, NoReturn, get_args

from crossopt.crossflow.workload import Precision
from crossopt.instances import question
from crossopt.instances.catalogue.huggingface import text_of
from crossopt.instances.catalogue.registry import UnknownNameError, device, is_path, model, technology_named, with_own_files
from crossopt.instances.catalogue.workload import model_text
from crossopt.instances.codesign.instance import Instance, MultiScaleQuestion, Portfolio, Scale
from crossopt.instances.codesign.open_questions import (
    FEWEST,
    MOST_COUNTS,
    PartFaults,
    batch_faults,
    batches_of,
    by_part,
    choices_named,
    number_of_parts,
    opened,
    per_sample,
    questions_of,
    zero_faults,
)
from crossopt.instances.codesign.plan_choices import Report
from crossopt.instances.codesign.plan_groups import last_with_plan
from crossopt.instances.codesign.reading import resolve
from crossopt.instances.codesign.section import KEYS, TRANSFORMER_CHOICES, CodesignFile
from crossopt.instances.codesign.space import combinations, hardware_points
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.document import Node, Scalar, fault_at, node_of, read_text
from crossopt.instances.files.document import text_of as file_text
from crossopt.instances.files.schema import read_as
from crossopt.instances.files.units import nearest, quoted
from crossopt.instances.files.written import Written, graft, with_setting

__all__ = ["KEYS", "about_of", "read", "read_instance", "read_question", "read_single_scale", "saved_single_scale", "size_of"]

_MOST_COUNTED = 1_000
"""Largest number of open questions counted exactly, for the message that there are too many."""
_NEEDED = {"kind": "codesign", "cluster.devices": "1"}
"""Placeholders for required sections that cannot be read."""
_NAMED = ("cluster.network.", "hardware=", "workload.precision=", "technology.package=", "technology.links=", "sites.groups=")
"""How settings begin that select a network, a device, a precision or a number of groups."""
Part = tuple[Scale, CodesignFile, tuple[str, ...]]
"""A part: its identification, the question, and the settings that select it."""
_LOOKS_AT = {
    "": ("hardware", "technology", "workload", "workloads"),
    "workload": ("workloads",),
    "workloads": ("workload",),
    "combine": ("workload", "workloads"),
    "cluster": ("hardware", "technology"),
    "choices": ("cluster", "hardware", "technology", "workload", "workloads"),
    "stack": ("workload", "workloads"),
    "objective": ("cluster", "efficiency", "hardware", "prices", "technology"),
}
"""Sections that a fault may depend on."""


def read_instance(path: str | Path, settings: tuple[str, ...] = (), workload: str | None = None) -> Instance:
    """The question of one workload on one number of devices in a file; of several workloads, the named one."""
    return _of_one_workload(read_single_scale(path, settings, workload))


def read_question(document: Mapping[str, Any]) -> Instance:
    """The question of one workload on one number of devices in a saved result."""
    return _of_one_workload(saved_single_scale(document))


def read_single_scale(path: str | Path, settings: tuple[str, ...] = (), workload: str | None = None) -> Instance | Portfolio:
    """The question on one number of devices in a file, of one or several workloads."""
    return _on_one_number(question.read(path, settings, workload))


def saved_single_scale(document: Mapping[str, Any]) -> Instance | Portfolio:
    """The question on one number of devices in a saved result, of one or several workloads."""
    return _on_one_number(question.read_again(document, "codesign"))


def read(written: Written) -> Instance | Portfolio | MultiScaleQuestion:
    """The question as written, in a file, a text or a saved result; an InstanceError with every fault."""
    listed = {path: nodes for path in _LISTS if (nodes := _items_at(written.root, path.split(".")))}
    if listed:
        return _of_lists(written, listed)
    written = written.at(with_own_files(written.root, written.files))
    faults: list[Fault] = []
    file = read_as(CodesignFile, written.root, faults)
    question: Instance | Portfolio | MultiScaleQuestion | None = None
    if file is not None:
        question = _question_in(file, written, lambda path, message: faults.append(written.fault(path, message)))
    else:
        beside = _faults_of_readable(written, faults)
        reported = {fault.path for fault in (*faults, *beside)}
        faults += [*beside, *(fault for fault in _unknown_names(written) if fault.path not in reported)]
    if faults or question is None:
        raise written.refused(faults)
    return question


# Lists of devices and precisions: a question for each of them, as if a setting had named it.

_LISTS = {
    "hardware": "device",
    "workload.precision": "precision",
    "technology.package": "package",
    "technology.links": "links",
    "sites.groups": "groups",
}


def _items_at(root: Node, path: list[str]) -> tuple[Node, ...]:
    """The items of the list at this path; none where something else stands there."""
    for key in path:
        if not isinstance(root.value, dict) or key not in root.value:
            return ()
        root = root.value[key].node
    return root.value if isinstance(root.value, tuple) else ()


def _of_lists(written: Written, listed: Mapping[str, tuple[Node, ...]]) -> MultiScaleQuestion:
    """The questions about each device and precision of the lists as one; those that cannot be asked are reported beside the answers."""
    faults = [fault for path, nodes in listed.items() for fault in _list_faults(path, nodes)]
    if not faults and prod(map(len, listed.values())) > MOST_COUNTS:
        faults = [written.fault(next(iter(listed)), f"these are more than the {MOST_COUNTS} that a question may compare (give fewer)")]
    if faults:
        raise written.refused(faults)
    found, wrong = list[tuple[Scale, Instance]](), list[tuple[str, InstanceError]]()
    _load_device_files(listed.get("hardware", ()), written)
    compared, impossible, objective = [_LISTS[path] for path in listed], list[tuple[Scale, str]](), ""
    for nodes in product(*listed.values()):
        texts = [str(node.value.text) for node in nodes if isinstance(node.value, Scalar)]
        label = ", ".join(_item_label(path, text) for path, text in zip(listed, texts, strict=True))
        try:
            question = read(_with_named(written, dict(zip(listed, nodes, strict=True)), texts))
        except InstanceError as error:
            wrong.append((label, error))
            continue
        if isinstance(question, Portfolio):
            raise written.refused([written.fault(next(iter(listed)), "they are compared for one workload (give one `workload`)")])
        objective = question.objective
        alone = (Scale(question.cluster.devices),) if isinstance(question, Instance) else question.scales
        found += zip(_labelled(label, alone), (question,) if isinstance(question, Instance) else question.parts, strict=True)
        if isinstance(question, MultiScaleQuestion):
            compared += ["network"] if question.networks and "network" not in compared else []
            impossible += [(labelled, why) for scale, why in question.impossible for labelled in _labelled(label, (scale,))]
    if not found:
        each = [dict.fromkeys(replace(fault, message=_plain_message(fault)) for fault in error.faults) for _, error in wrong]
        shared = [fault for fault in each[0] if all(fault in others for others in each)]
        raise written.refused(shared or dict.fromkeys(fault for others in each for fault in others))
    if "groups" in compared:
        from crossopt.instances.codesign.sites import groups_faults  # noqa: PLC0415 - few questions have sites

        if message := groups_faults([part for _, part in found]):
            raise written.refused([written.fault("sites.groups", message)])
    found.sort(key=lambda pair: pair[0].devices)
    pairs = dict.fromkeys((scale.devices, scale.batch) for scale, _ in found)
    impossible += [(Scale(*pair, label), _why(error)) for label, error in wrong for pair in pairs]
    places, parts = zip(*found, strict=True)
    return MultiScaleQuestion(parts[0].name, objective, places, parts, written.document, tuple(impossible), tuple(compared))


def _item_label(path: str, text: str) -> str:
    """What an item of a list is called."""
    return f"{text} group{'s' * (text != '1')}" if path == "sites.groups" else text


def _load_device_files(nodes: Iterable[Node], written: Written) -> None:
    """Read the user's files of devices before the document, which holds them, is copied into every part."""
    for node in nodes:
        if isinstance(node.value, Scalar) and is_path(node.value.text):
            with suppress(ValueError, OSError):  # reported where the device is read
                written.files.text(node.value.text, file_text)


def _list_faults(path: str, nodes: Sequence[Node]) -> Iterator[Fault]:
    """What in a list is no name, is named twice, or is unknown."""
    seen = set[str]()
    for node in nodes:
        text = node.value.text if isinstance(node.value, Scalar) else ""
        message = "" if text else "each of several is a name or the path of a file"
        message = "it is named twice (name each once)" if text in seen else message
        if text and path == "hardware" and not is_path(text):
            try:
                device(text)
            except UnknownNameError as error:
                message = str(error)
        if text and path == "workload.precision" and text not in get_args(Precision):
            message = f"{quoted(text)} is no precision (one of {', '.join(get_args(Precision))})"
        seen.add(text)
        if message:
            yield Fault(node.line, node.column, node.path, message)


def _with_named(written: Written, named: Mapping[str, Node], texts: Sequence[str]) -> Written:
    """The question with one item in place of each list, and the settings that say so."""
    root = written.root
    for path, node in named.items():
        root = graft(root, path.split("."), node)
    plain = (text if fullmatch(r"[\w./-]+", text) else dumps(text) for text in texts)
    settings = (f"{path}={text}" for path, text in zip(named, plain, strict=True))
    return replace(written, root=root, settings=(*written.settings, *settings))


def _labelled(label: str, places: Iterable[Scale]) -> Iterator[Scale]:
    return (scale._replace(network=", ".join(text for text in (label, scale.network) if text)) for scale in places)


def _why(error: InstanceError) -> str:
    return "; ".join(map(_plain_message, error.faults))


def _plain_message(fault: Fault) -> str:
    """Without the setting that it is from, which names the item of the list."""
    return fault.message.partition(" [from --set")[0]


def _faults_of_readable(written: Written, faults: list[Fault]) -> list[Fault]:
    """Faults of the readable sections that do not depend on unreadable ones."""
    faulty, entries = {_section(fault.path) for fault in faults}, written.root.value
    faulty |= {meant for key in faulty - KEYS.top for meant in nearest(key, KEYS.top)}
    if not isinstance(entries, dict):
        return []
    root = replace(written.root, value={key: entry for key, entry in entries.items() if key not in faulty})
    for needed, text in _NEEDED.items():
        root = graft(root, needed.split("."), node_of(text)) if _section(needed) in faulty else root
    found: list[Fault] = []

    def report(path: str, message: str) -> None:
        section = "choices" if ".choices." in path else _section(path)
        if faulty.isdisjoint((section, *_LOOKS_AT.get(section, ()))):
            found.append(written.fault(path, message))

    file = read_as(CodesignFile, root, [])
    if file is not None:
        with suppress(InstanceError):
            _question_in(file, written.at(root), report)
    return found


def _unknown_names(written: Written) -> list[Fault]:
    """Unknown networks, devices and technologies, whatever else is wrong with their sections."""
    found, looked_up = list[Fault](), (("workload.model", model), ("hardware", device), ("technology", technology_named))
    for path, named in looked_up:
        text = _text_at(written.root, path.split("."))
        try:
            _ = text and named(text)
        except UnknownNameError as error:
            found.append(written.fault(path, str(error)))
    return found


def _text_at(node: Node, path: list[str]) -> str:
    """The text at this path if it is a scalar; else empty."""
    for key in path:
        if not isinstance(node.value, dict) or key not in node.value:
            return ""
        node = node.value[key].node
    return node.value.text if isinstance(node.value, Scalar) else ""


def _section(path: str) -> str:
    return path.partition(".")[0].partition("[")[0]


def _question_in(file: CodesignFile, written: Written, report: Report) -> Instance | Portfolio | MultiScaleQuestion | None:
    """The section as one question, or as one per number of devices, batch and workload."""
    file = per_sample(file, written.root)
    if file.sites is not None:
        from crossopt.instances.codesign.sites import per_mean_step  # noqa: PLC0415 - few questions have sites

        file = per_mean_step(file, written.root)
    counts, batches = file.cluster.devices, batches_of(file)
    faults = [*(batch_faults(file) if batches else []), *zero_faults(file.cluster)]
    for size, path, what in (
        (len(counts), "cluster.devices", "numbers of devices"),
        (len(batches), "workload.global_batch", "batches"),
        (len(counts) * len(batches), "workload.global_batch", "pairs of a number of devices and a batch"),
    ):
        if size > MOST_COUNTS:
            faults.append((path, f"{size} {what} are more than the {MOST_COUNTS} that a question may have (give fewer, or a larger step)"))
            break
    if file.sites is not None and len(counts) * len(batches or (0,)) > 1:
        faults.append(("sites", "groups share one number of devices and one batch (give one of each)"))
    for path, message in faults:
        report(path, message)
    if faults:
        return None
    _load_config_files(file, written)
    parts = tuple(islice(by_part(file, MOST_COUNTS + 1), MOST_COUNTS + 1))
    if len(parts) > MOST_COUNTS:
        what = "networks, with numbers of devices and batches," if len(counts) * len(batches or (0,)) > 1 else "networks"
        count = f"{_count_text(number_of_parts(file, _MOST_COUNTED))} {what} are left open, more than the {MOST_COUNTS} allowed"
        report("cluster.network", f"{count} (give fewer options)")
        return None
    if len(parts) == 1 and not batches:
        scaled = replace(file, cluster=parts[0][1].cluster)
        return _of_workloads(scaled, written, written.document, report)
    return _multi_scale_question(file, written, parts, report)


def _count_text(number: int) -> str:
    return f"{number:,}" if number < _MOST_COUNTED else f"at least {_MOST_COUNTED:,}"


def _multi_scale_question(file: CodesignFile, written: Written, scales: Sequence[Part], report: Report) -> MultiScaleQuestion | None:
    """A question for each number of devices, network and batch; if some have one, the others are reported beside the answers."""
    document, parts, wrong = written.document, list[tuple[Scale, Instance]](), list[tuple[Scale, list[tuple[str, str]]]]()
    for scale, part_file, added in scales:
        reported: list[tuple[str, str]] = []
        own = {**document, "settings": [*document["settings"], *added]}
        part = _of_workloads(part_file, written, own, _into(reported))
        if reported or part is None:
            wrong.append((scale, reported))
        else:
            parts.append((scale, _of_one_workload(part)))
    if not parts:
        for path, message in dict.fromkeys(fault for _, reported in wrong for fault in reported):
            report(path, message)
        return None
    impossible = tuple((scale, "; ".join(message for _, message in reported)) for scale, reported in wrong)
    places, found = zip(*parts, strict=True)
    return MultiScaleQuestion(found[0].name, file.objective, places, found, document, impossible)


def _into(reported: list[tuple[str, str]]) -> Report:
    return lambda path, message: reported.append((path, message))


def _load_config_files(file: CodesignFile, written: Written) -> None:
    """Read the shapes in files before the document, which holds them, is copied into every part."""
    for section in (file.workload, *(file.workloads or ())):
        if section is not None and section.config is not None:
            with suppress(ValueError):  # told where the workload is built
                written.files.text(section.config, text_of)


def _of_workloads(file: CodesignFile, written: Written, document: dict[str, Any], report: Report) -> Instance | Portfolio | None:
    """The question of one workload, or of several; of several, the named one if one is named."""
    if file.workloads is None:
        named = choices_named(written.root)
        question = resolve(opened(file, named), written, document, report)
        left = () if file.choices.rest == "all" else tuple(name for name in TRANSFORMER_CHOICES if name not in named)
        several: Instance | Portfolio | None = question and replace(question, unnamed=left)
    else:
        several = _portfolio(file, written, document, report)
    if several is None or written.workload is None:
        return several
    parts = several.parts if isinstance(several, Portfolio) else ()
    found = next((part for part in parts if part.document["workload"] == written.workload), None)
    known = ", ".join(part.name for part in parts)
    message = f"{quoted(written.workload)} is none of the workloads (one of {known})" if parts else "there is one workload only (name none)"
    return found or _refused(several, message)


def _portfolio(file: CodesignFile, written: Written, document: dict[str, Any], report: Report) -> Portfolio | None:
    """Several workloads: each is the question that remains without the others."""
    questions = questions_of(file, written.root, report)
    part_faults = PartFaults(len(questions))
    parts = [
        resolve(part.file, written, {**document, "workload": part.name}, part_faults.reporter(index, part))
        for index, part in enumerate(questions)
    ]
    part_faults.report_to(report)
    found = tuple(part for part in parts if part is not None)
    if not found or len(found) < len(parts):
        return None
    name = file.name or Path(written.source).stem
    return Portfolio(name, found, tuple(part.weight for part in questions), file.combine or "weighted_sum", document)


def _of_one_workload(question: Instance | Portfolio) -> Instance:
    if isinstance(question, Instance):
        return question
    names = ", ".join(part.name for part in question.parts)
    return _refused(question, f"this is answered for one workload at a time, here are several (say --workload NAME, one of {names})")


def _on_one_number(question: Instance | Portfolio | MultiScaleQuestion) -> Instance | Portfolio:
    if not isinstance(question, MultiScaleQuestion):
        return question
    source, settings = str(question.document["source"]), question.document["settings"]
    key = "cluster.devices" if question.by_devices else key_compared(question) if question.networks else "workload.global_batch"
    message = f"{several_text(question)} are given, but one is needed (say {narrowing(question)}; `solve` finds the best of them)"
    fault = fault_at(read_text(question.document["text"], source), key, message)
    raise InstanceError(source, [with_setting(fault, settings, KEYS)])


def key_compared(question: MultiScaleQuestion) -> str:
    """The key of the question that lists what is compared beside numbers of devices and batches."""
    keys = {"network": "cluster.network", **{axis: path for path, axis in _LISTS.items()}}
    return keys[question.compared[0]]


def several_text(question: MultiScaleQuestion) -> str:
    """Numbers of devices, networks and batches in words."""
    counts = ((len(question.asked_for) * question.by_devices, "numbers of devices"), (len(question.networks), question.compared_names))
    return " and ".join(f"{count} {what}" for count, what in (*counts, (len(question.samples), "batches")) if count)


def narrowing(question: MultiScaleQuestion, index: int | None = None) -> str:
    """Command-line settings that select one part: its number of devices, network and batch.
    The default is the last part that has a plan, or the last part if none has one.
    """
    index = last_with_plan(question) if index is None else index
    settings = [f"cluster.devices={question.counts[index]}"] if question.by_devices else []
    settings += [key for key in question.parts[index].document["settings"] if key.startswith(_NAMED)] if question.networks else []
    settings += [f"workload.global_batch={question.batches[index]}"] if question.batches else []
    settings += ["objective=step_time"] if question.objective == FEWEST else []
    return " ".join(f"--set {quote(key)}" for key in settings)


def _refused(question: Instance | Portfolio, message: str) -> NoReturn:
    raise InstanceError(str(question.document["source"]), [Fault(1, 1, "workloads", message)])


def size_of(question: Instance | Portfolio | MultiScaleQuestion) -> str:
    """Number of designs, for each number of devices, network and batch."""
    if not isinstance(question, MultiScaleQuestion):
        return _size(question)
    return "; ".join(f"{question.part_name(index)}: {_size(part)}" for index, part in enumerate(question.parts))


def count_of(question: Instance | Portfolio | MultiScaleQuestion) -> float:
    """Number of designs before the rules that make them plans."""
    if not isinstance(question, Instance):
        return sum(count_of(part) for part in question.parts)
    return float(hardware_points(question)) * float(combinations(question))


def about_of(question: Instance | Portfolio | MultiScaleQuestion) -> tuple[str, ...]:
    """The workload in lines of text."""
    first = question.parts[:1] if isinstance(question, MultiScaleQuestion) else (question,)
    several = [part for scale in first for part in (scale.parts if isinstance(scale, Portfolio) else (scale,))]
    return tuple(line for part in several for line in model_text(part.workload))


def _size(question: Instance | Portfolio) -> str:
    parts = question.parts if isinstance(question, Portfolio) else (question,)
    points, plans = hardware_points(parts[0]), [combinations(part) for part in parts]
    listed = " x ".join(f"{count:,}" for count in plans)
    is_single = plans == [1]
    return f"{points:,} hardware point{'s' * (points != 1)} x {listed} combination{'s' * (not is_single)} of plan choices"
