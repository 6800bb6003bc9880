"""What tells one run of a sweep from all others: a key that is the same wherever, whenever and by however many processes it is asked.

A key is a digest of the question as it stands after its settings, of the files that it names, of the engine and what it may spend, of the
code that answers, and of the solvers beside it. Paths, names, times and machines are no part of it.
"""

import json
from collections.abc import Mapping
from functools import cache, lru_cache
from hashlib import sha256
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from math import isfinite
from pathlib import Path
from typing import Any, Final

from crossopt.instances.files.document import Node, Scalar, read_text
from crossopt.instances.files.written import TOP_ONLY, lay_over
from crossopt.instances.kinds import KINDS, is_graph_text
from crossopt.solvers.answer import Limits

LENGTH: Final = 32
"""Signs of a key."""
_BESIDE: Final = ("numpy", "networkx", "pulp", "ortools", "numba", "highspy", "optuna")
"""Packages that may change an answer."""
_ROOMS: Final = ("crossflow", "formulation", "instances", "solvers")
_ANSWERS_NOTHING: Final = ("instances/course/", "solvers/grading/", "solvers/study/", "solvers/sweeps/")
_NAMES: Final = ("name", "description")


def key_of(question: str, engine: str, limits: Limits) -> str:
    """The key of a question, which is told by its digest, asked of an engine within these limits."""
    seconds = limits.seconds if isfinite(limits.seconds) else None
    spent = {"seconds": seconds, "seed": limits.seed, "gap": limits.gap, "form": limits.form, "workers": limits.workers}
    spent |= {} if limits.start == "recipe" else {"start": limits.start}
    return digest_of({"question": question, "engine": engine, "limits": spent, **answerers()})[:LENGTH]


def answerers() -> dict[str, Any]:
    """The code and the packages that answer, beside which an answer of others is another one."""
    return {"code": code_digest(), "beside": _beside()}


@lru_cache(maxsize=64)
def _tree_of(text: str, source: str) -> Node:
    """A question before its settings, which most points of a study share."""
    return read_text(text, source)


def question_digest(kind: str, document: Mapping[str, Any]) -> str:
    """The digest of what is asked, from what a result keeps of its question."""
    files = {name: sha256(text.encode()).hexdigest() for name, text in document.get("files", {}).items()}
    asked: dict[str, Any] = {"kind": kind, "workload": document.get("workload"), "files": files}
    if is_listed(document):
        text = document["digest"] if "text" not in document else sha256(document["text"].encode()).hexdigest()
        return digest_of({**asked, "text": text, "settings": list(document["settings"])})
    root = _tree_of(document["text"], document["source"])
    keys = getattr(import_module(KINDS[kind].question), "KEYS", TOP_ONLY)
    for setting in document["settings"]:
        root = lay_over(root, setting, document["source"], keys)
    tree = _plain(root)
    return digest_of({**asked, "tree": {name: value for name, value in tree.items() if name not in _NAMES}})


def is_listed(document: Mapping[str, Any]) -> bool:
    """Whether settings count as they are listed, as the question is an author's file and no tree that they are laid over."""
    return "text" not in document or is_graph_text(document["source"], document["text"])


def digest_of(data: object) -> str:
    """The digest of plain data, whatever the order of its keys."""
    return sha256(json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()).hexdigest()


def _plain(node: Node) -> Any:  # noqa: ANN401 - JSON as it is
    """The tree without places and comments."""
    match node.value:
        case dict() as entries:
            return {key: _plain(entry.node) for key, entry in entries.items()}
        case tuple() as items:
            return [_plain(item) for item in items]
        case Scalar() as scalar:
            return None if scalar.empty else scalar.text


@cache
def code_digest() -> str:
    """The digest of all that prices, reads and answers, and of the registry: an answer of other code is another answer."""
    root, told = Path(__file__).resolve().parents[2], sha256()
    for path in sorted(path for room in _ROOMS for path in (root / room).rglob("*") if path.suffix in {".py", ".yaml"}):
        name = path.relative_to(root).as_posix()
        if not name.startswith(_ANSWERS_NOTHING) and (path.suffix == ".py" or name.startswith("instances/registry/")):
            told.update(f"{name}\0".encode())
            told.update(sha256(path.read_bytes()).digest())
    return told.hexdigest()


@cache
def _beside() -> dict[str, str | None]:
    return {name: _version_of(name) for name in _BESIDE}


def _version_of(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
