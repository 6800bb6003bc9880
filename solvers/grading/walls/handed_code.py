"""What of a program is run: the files that were handed in, as they were, and Python's own and its packages'. Any system.

A solution that is decoded, unpacked or written while the program runs says nothing to whoever compares programs. So a text becomes code in
two ways alone: by an import, of a file that still says what it said, or of one outside the folder; and by libraries, which make functions
out of names (`namedtuple`, `dataclass`) or lie among the packages. An audit hook (PEP 578) looks at every other way, from wherever it is
gone, and cannot be taken off. It is no wall: who reaches into the memory of the interpreter is past it.
"""

import os
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from crossopt.instances.course import handed_in

REFUSED = "only what stands in the files handed in is run: no exec or eval, nothing that is unpacked or written while the program runs"
_BY_TEXT, _BY_BYTES = ("compile", "exec"), ("marshal.loads", "pickle.find_class", "code.__new__", "function.__new__")
_IMPORTS = frozenset(f"<frozen {name}>" for name in ("importlib._bootstrap", "importlib._bootstrap_external", "zipimport"))
_MAKERS = ("dataclasses.py", "enum.py", "collections/__init__.py")
"""Of Python's own, what makes functions out of names that it has looked at."""
_READERS = ("ast.py", "typing.py")
"""What compiles texts and runs none: a tree, or the name of a type in so many signs."""
_NAME_OF_A_TYPE = 200


def run_only_handed_in(own: Path) -> None:
    """From now on, and for good. `own` is the folder of the program."""
    handed = {str(path): path.read_bytes() for path in own.rglob("*.py") if path.is_file()}
    packages = tuple(f"{sysconfig.get_path(name)}{os.sep}" for name in ("purelib", "platlib"))
    makers, readers = ({str(Path(sysconfig.get_path("stdlib"), name)) for name in names} for names in (_MAKERS, _READERS))
    makers.add(str(handed_in.__file__))  # runs the cells of notebooks

    def stands(path: str, text: bytes | None = None) -> bool:
        place = Path(os.path.realpath(own / path))
        if place.is_relative_to(own):
            return str(place) in handed and text in (None, handed[str(place)])
        return text is None or (place.is_file() and text == place.read_bytes())

    def may(event: str, given: tuple[Any, ...], by: FrameType) -> bool:
        caller = by.f_code.co_filename
        if caller.startswith(packages):
            return True
        if event == "marshal.loads":  # what Python has compiled; no submission holds such a file
            path = by.f_locals.get("bytecode_path")
            return caller in _IMPORTS and path is not None and not Path(os.path.realpath(own / path)).is_relative_to(own)
        if caller in _IMPORTS and event in _BY_TEXT:
            return stands(given[1], given[0]) if event == "compile" else stands(given[0].co_filename)
        named = event == "compile" and caller in readers and (caller.endswith("ast.py") or len(given[0]) <= _NAME_OF_A_TYPE)
        return caller in makers or named

    sys.addaudithook(_hook(may))


def _hook(may: Callable[[str, tuple[Any, ...], FrameType], bool]) -> Callable[[str, tuple[Any, ...]], None]:
    """Asks of each event by which a text or bytes become code."""
    events = frozenset((*_BY_TEXT, *_BY_BYTES))

    def look(event: str, given: tuple[Any, ...]) -> None:
        if event in events and not may(event, given, sys._getframe(1)):
            raise PermissionError(REFUSED)

    return look
