"""The only ways into a question: `read` a file with settings laid over it, or a text (`read_given`), and `read_again` what a saved result
keeps of one.

An author's file, such as a graph in JSON or a profile, is short for a question of its kind that names this file; whatever may be said in
YAML is a setting of it too.
"""

import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, get_args

from crossopt.instances import kinds
from crossopt.instances.errors import Fault, InstanceError, RefusedError
from crossopt.instances.files.careful import LOOKED_AT
from crossopt.instances.files.document import Node, Scalar, node_of, read_text, text_in, text_of
from crossopt.instances.files.graphs import text_of as text_of_graph
from crossopt.instances.files.units import nearest, quoted
from crossopt.instances.files.written import TOP_ONLY, Files, Written, graft, lay_over


class Question(Protocol):
    """What every question has."""

    @property
    def name(self) -> str: ...
    @property
    def document(self) -> dict[str, Any]: ...


def read(path: str | Path, settings: tuple[str, ...] = (), workload: str | None = None) -> Any:  # noqa: ANN401 - of any kind
    """The question in a file, of whatever kind it is; an InstanceError with every fault."""
    path = Path(path)
    kind = kinds.kind_of_file(path)
    if not kinds.KINDS[kind].question:
        raise InstanceError(
            kinds.name_of(path), [Fault(1, 1, "kind", f"this asks many questions at once (`crossopt compare {path}` answers it)")]
        )
    return _read(path, kinds.name_of(path), kind, settings, workload)


def read_given(text: str, kind: str, settings: tuple[str, ...] = (), workload: str | None = None, files: Files | None = None) -> Any:  # noqa: ANN401 - of any kind
    """The question in a text, which names files from the working folder unless it is given `files`; an InstanceError with every fault."""
    source = "question.yaml"
    return _with_text(kind, Written(source, text, read_text(text, source), settings, files or Files(Path()), workload))


def read_again(document: Mapping[str, Any], kind: str, folder: Path = Path()) -> Any:  # noqa: ANN401 - of any kind
    """The question that a result of this kind keeps; one of which it keeps a digest is also looked for in the result's folder."""
    source, settings, workload = document.get("source"), document.get("settings"), document.get("workload")
    sound = isinstance(settings, list | tuple) and all(isinstance(setting, str) for setting in settings)
    if not isinstance(source, str) or not set(source).isdisjoint("\t\n\r") or not sound or not isinstance(workload, str | None):
        raise _lacking("instance", "the text of the question is missing")
    given = tuple(settings or ())
    if kinds.KINDS[kind].digest:
        return _found_again(document, source, kind, given, folder)
    text, files = document.get("text"), document.get("files", {})
    if not isinstance(text, str) or not isinstance(files, dict) or not all(isinstance(file_text, str) for file_text in files.values()):
        raise _lacking("instance", "the text of the question is missing")
    path, beside = Path(source), Files(Path(source).parent, dict(files), saved=True)
    try:
        authors = kinds.is_graph_text(path.name, text)
    except ValueError as error:
        raise _lacking("instance.text", str(error)) from error
    if authors and not kinds.KINDS[kind].author:
        raise _lacking("instance.source", f"{kinds.KINDS[kind].about} are asked in YAML, and {quoted(source)} is an author's file")
    root = _naming(path, kind) if authors else read_text(text, source)
    if authors:
        beside.texts[path.name] = text
    return _question_in(kind, Written(source, text, root, given, beside, workload))


def kind_of_question(question: object) -> str | None:
    """The problem type whose module reads such questions; None for what is no question."""
    for name, kind in kinds.KINDS.items():
        module = sys.modules.get(kind.question)  # what has been read was read by a module that is loaded
        returned = module.read.__annotations__["return"] if module else None
        if type(question) in (get_args(returned) or (returned,)):
            return name
    return None


def _read(path: Path, source: str, kind: str, settings: tuple[str, ...], workload: str | None = None) -> Any:  # noqa: ANN401
    files, text = Files(path.parent), ""
    if path == kinds.STANDARD_INPUT:
        files.texts[path.name] = text_in(kinds.standard_input(), source)
    if not kinds.is_graph_file(path):
        start = kinds.file_start(path)
        text = files.texts.get(path.name) or (text_in(start, str(path)) if 0 < len(start) < LOOKED_AT else text_of(path))
        root = read_text(text, source)
    else:
        root = _naming(path, kind)
        text = "" if kinds.KINDS[kind].digest else files.text(path.name, text_of_graph)
    return (_with_text if path == kinds.STANDARD_INPUT else _question_in)(kind, Written(source, text, root, settings, files, workload))


def _with_text(kind: str, written: Written) -> Any:  # noqa: ANN401 - of any kind
    """A question of no file, whose results hold its text."""
    question = _question_in(kind, written)
    return replace(question, text=written.text) if kinds.KINDS[kind].digest and question.source == written.source else question


def _found_again(document: Mapping[str, Any], source: str, kind: str, settings: tuple[str, ...], folder: Path) -> Any:  # noqa: ANN401 - of any kind
    """The question in a text that a result has, or in a file that it names, which must not be another one now."""
    digest, text = document.get("digest"), document.get("text")
    if isinstance(text, str):
        question = _with_text(kind, Written(source, text, read_text(text, source), settings, Files(Path())))
        if question.document["digest"] != digest:
            raise _lacking("instance.digest", "the text of the question is another one than the digest says (solve it again)")
        return question
    path = next((candidate for candidate in (Path(source), folder / source, folder / Path(source).name) if candidate.is_file()), None)
    if path is None:
        raise _lacking("instance.source", f"there is no {source} (put the file of the question there, or beside the result)")
    question = _read(path, source, kind, settings)
    if question.document["digest"] != digest:
        now, then = question.document["digest"][:12], str(digest)[:12]
        message = f"{path} is another file now: its digest is {now}..., the result says {then}... (solve it again)"
        raise _lacking("instance.digest", message)
    return question


def _naming(path: Path, kind: str) -> Node:
    """The question in YAML that an author's file is short for."""
    value: Any = path.name
    for key in reversed(kinds.KINDS[kind].author):
        value = {key: value}
    return node_of({"kind": kind, **value})


def _question_in(kind: str, written: Written) -> Any:  # noqa: ANN401 - of any kind
    """What the kind makes of it once the settings are laid over the tree."""
    if not kinds.KINDS[kind].question:
        raise RefusedError(f"{written.source}: {kinds.KINDS[kind].about} ask many questions, and here one is needed (`compare` runs them)")
    module, root = import_module(kinds.KINDS[kind].question), written.root
    keys = getattr(module, "KEYS", TOP_ONLY)
    for setting in written.settings:
        root = lay_over(root, setting, written.source, keys)
    unknown_kind = _unknown_kind_fault(root) if kind == "codesign" else None
    if unknown_kind is None:
        return module.read(replace(written, root=root, keys=keys))
    settled = replace(written, root=graft(root, ["kind"], node_of(kind)), keys=keys)
    if not _is_design(root):
        raise settled.refused([unknown_kind])
    try:  # what else is wrong, as it looks like a joint design
        module.read(settled)
    except InstanceError as error:
        raise settled.refused([unknown_kind, *(error.faults if error.source == settled.source else ())]) from error
    raise settled.refused([unknown_kind])


_DESIGNS = ("cluster", "workload", "workloads", "hardware", "technology", "choices")
"""Keys by which a question without a known kind looks like one about joint designs."""


def _is_design(root: Node) -> bool:
    """Whether a question without a known kind is one about joint designs: by the nearest kind, or else by its keys."""
    if not isinstance(root.value, dict):
        return False
    guess = _nearest_kinds(root.value["kind"].node) if "kind" in root.value else []
    keys = root.value.keys()
    return not keys.isdisjoint(_DESIGNS) and (guess[0] == "codesign" if guess else "cluster" in keys)


def _nearest_kinds(node: Node) -> list[str]:
    """The kinds that a word, or a list of one, may mean; the likeliest first."""
    items = node.value if isinstance(node.value, tuple) else (node,)
    word = items[0].value if len(items) == 1 else None
    return nearest(word.text, kinds.KINDS, likeness=0.75) if isinstance(word, Scalar) else []


def _unknown_kind_fault(root: Node) -> Fault | None:
    """Why a kind is none, with all that there are."""
    if not isinstance(root.value, dict):
        return None
    entry, known = root.value.get("kind"), ", ".join(kinds.KINDS)
    if entry is None:
        return Fault(root.line, root.column, "kind", f"this key is missing, a word is needed (one of {known})")
    node, guess = entry.node, _nearest_kinds(entry.node)
    if not isinstance(node.value, Scalar):
        remedy = f"write kind: {guess[0]}" if guess else f"one of {known}"
        return Fault(node.line, node.column, "kind", f"one word is needed, and this is several or a list ({remedy})")
    if node.value.text in kinds.KINDS:
        return None
    remedy = f"did you mean '{guess[0]}'? The kinds are {known}" if guess else f"one of {known}"
    return Fault(node.line, node.column, "kind", f"{quoted(node.value.text)} is unknown ({remedy})")


def _lacking(path: str, message: str) -> InstanceError:
    return InstanceError("result", [Fault(1, 1, path, message)])
