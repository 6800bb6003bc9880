"""Ways out of what a submission may do: to run what was not handed in, and to see what it was not asked yet."""

import py_compile
from pathlib import Path

import pytest

from crossopt.solvers.grading.running import Call, run
from crossopt.solvers.grading.walls import missing
from tests.solvers.grading.programs import written

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"programs cannot be walled in here: {missing()}")

CODE = "import sys; sys.escaped = 1 + 1"
"""What each of these ways would run."""
HELP = f"""
import ctypes, gc, importlib, importlib.machinery as m, json, os, pathlib, sys, types
CODE = {CODE!r}
class Equal(bytes):
    def __eq__(self, other):
        return True
    __hash__ = bytes.__hash__
class Flags(int):
    def __and__(self, other):
        return other
class Reduced:
    def __reduce__(self):
        return exec, (CODE,)
def ours(name):
    return next((one for one in gc.get_objects() if getattr(one, '__name__', '') == name and getattr(one, '__defaults__', ())), ours)
def run(code):
    importlib._bootstrap._call_with_frames_removed(exec, code, dict())
def imported(name):
    pathlib.Path(name + '.py').write_text(CODE)
    sys.path.insert(0, os.getcwd())
    __import__(name)
def nothing():
    pass
"""
TO_CODE = {
    "numpy.testing": "import numpy.testing; numpy.testing.runstring(CODE, {})",
    "yaml": "import yaml; yaml.unsafe_load('!!python/object/apply:exec [\"' + CODE + '\"]')",
    "yaml object": "import yaml; yaml.load('!!python/object/apply:eval [\"exec(\\'' + CODE + '\\')\"]', yaml.UnsafeLoader)",
    "pickle": "import pickle; pickle.loads(pickle.dumps(Reduced()))",
    "python's own pickle": "import pickle; pickle._loads(pickle._dumps(Reduced()))",
    "subclasses": "next(c for c in object.__subclasses__() if 'wrap_cl' in str(c)).__init__.__globals__['__builtins__']['exec'](CODE)",
    "importlib": "importlib.import_module('builtins').exec(CODE)",
    "a loader": "run(m.SourceFileLoader('mine', 'x').source_to_code(CODE.encode(), os.__file__))",
    "a loader of bytes equal to all": "run(m.SourceFileLoader('mine', 'x').source_to_code(Equal(CODE.encode()), os.__file__))",
    "compiled bytes": "run(importlib._bootstrap_external._compile_bytecode(READY[16:], 'mine', json.__cached__))",
    "a file and patched paths": "pathlib.Path.read_bytes = lambda _: READY; os.path.realpath = lambda _: os.__file__; imported('mine')",
    "a patched frame": "sys._getframe = lambda _: types.SimpleNamespace(f_code=json.dumps.__code__); exec(CODE)",
    "patched builtins": "import builtins; builtins.any = builtins.frozenset = lambda *_: 1; exec(CODE)",
    "dataclasses": "import dataclasses; dataclasses._create_fn('f', [], [CODE.replace(';', '\\n '), 'return 1'])()",
    "names of fields": "import dataclasses as d; d._init_param = lambda _: 'x=setattr(sys, \"escaped\", 1 + 1)'; "
    "d.dataclass(type('C', (), {'__annotations__': {'x': int}, '__module__': __name__}))",
    "trees": "import ast; ast.PyCF_ONLY_AST = 0; nothing.__code__ = ast.parse(CODE); nothing()",
    "trees with false flags": "import ast; ast.PyCF_ONLY_AST = Flags(); nothing.__code__ = ast.parse(CODE); nothing()",
    "the code of our hook": "ours('_look').__code__ = (lambda event, given, bound=(): None).__code__; exec(CODE)",
    "the defaults of our hook": "ours('_look').__defaults__ = ((frozenset(),) * 6,); exec(CODE)",
    "an interpreter in ours": "import _xxsubinterpreters as s; s.run_string(s.create(), 'x = 1'); sys.escaped = 1",
    "an extension that is written": "import importlib.util as u; pathlib.Path('mine.so').write_bytes(b''); "
    "u.module_from_spec(u.spec_from_file_location('mine', os.path.abspath('mine.so'), loader=m.ExtensionFileLoader('mine', 'mine.so')))",
    "a library that is written": "pathlib.Path('mine.so').write_bytes(b''); ctypes.CDLL('./mine.so')",
    "ctypes": "assert ctypes.pythonapi.PyRun_SimpleString(CODE.encode()) == 0",
    "doctest": "import doctest; doctest.run_docstring_examples('>>> ' + CODE, {})",
    "an interactive interpreter": "import code; code.InteractiveInterpreter().runsource(CODE)",
    "a debugger": "import bdb; bdb.Bdb().run(CODE)",
    "a timer": "import timeit; timeit.timeit(CODE, number=1)",
    "code put together": "nothing.__code__ = nothing.__code__.replace(co_consts=('sys',)); nothing(); sys.escaped = 1",
    "another process": "os.fork() or os._exit(0); sys.escaped = 1",
}


def ready(folder: Path) -> bytes:
    """The code, compiled."""
    file = py_compile.compile(str(written(folder / "ready", CODE) / "solution.py"), str(folder / "ready.pyc"), doraise=True)
    return Path(str(file)).read_bytes()


@pytest.mark.parametrize("way", TO_CODE)
def test_nothing_is_run_that_was_not_handed_in(way: str, tmp_path: Path) -> None:
    program = f"{HELP}READY = {ready(tmp_path)!r}\ndef one():\n    {TO_CODE[way]}\n    return getattr(sys, 'escaped', 0)\n"
    (found,) = run(written(tmp_path / "in", program) / "solution.py", [Call("one", ())], 10, walls=True)
    assert found.value in {None, 0}
    assert found.value == 0 or "PermissionError" in found.failure or "AssertionError" in found.failure


HIDDEN = "hidden-271828182845"
"""What the second call is asked, and the first one looks for."""
SEARCH = r"""
import ctypes, gc, inspect, json, os, pathlib, re, stat, sys, threading, traceback
SOUGHT = re.compile(''.join(['hid', 'den-', '[0-9]{12}']).encode())
SEEN, plainly = [], json.JSONDecoder.decode
json.JSONDecoder.decode = lambda self, text, *more: (SEEN.append(text), plainly(self, text, *more))[1]
def there(*objects):
    seen, depth = set(), 8
    while objects and depth:
        depth, objects = depth - 1, [one for one in objects if id(one) not in seen]
        seen.update(map(id, objects))
        texts = [one.encode('utf-8', 'replace') if isinstance(one, str) else one for one in objects if isinstance(one, (str, bytes))]
        if any(map(SOUGHT.search, texts)):
            return True
        objects = gc.get_referents(*objects)
    return False
def frames(*those):
    for frame in those or (sys._getframe(),):
        yield from stack(frame)
def stack(frame):
    while frame:
        yield from (frame, frame.f_locals, frame.f_globals)
        frame = frame.f_back
def of_error():
    try:
        raise ValueError
    except ValueError as error:
        return [one.f_locals for one, _ in (*traceback.walk_tb(error.__traceback__), *traceback.walk_stack(None))]
def pipes():
    for number in range(64):
        try:
            if stat.S_ISFIFO(os.fstat(number).st_mode):
                os.set_blocking(number, False)
                yield os.read(number, 1 << 16)
        except OSError:
            pass
    for number in range(64):
        try:
            os.set_blocking(number, True)
        except OSError:
            pass
def files():
    for folder in ('.', '/tmp', os.path.dirname(os.getcwd()), os.environ['TMPDIR'], GRADER):
        for path in pathlib.Path(folder).rglob('*'):
            try:
                yield path.read_bytes()
            except OSError:
                continue
def one(argument):
    return bool(WAY)
"""
TO_CALLS = {
    "frames": "there(*frames())",
    "frames of threads": "there(*frames(*sys._current_frames().values()))",
    "collected objects": "there(*gc.get_objects())",
    "referrers": "there(*gc.get_referrers(one), *gc.get_referrers(sys.modules[__name__]))",
    "the stack of inspect": "there(*(frame.frame.f_locals for frame in inspect.stack()))",
    "a traceback": "there(*of_error())",
    "modules": "there(*sys.modules.values())",
    "a patched reader": "there(SEEN)",
    "memory": "SOUGHT.search(ctypes.string_at(id(argument) >> 14 << 14, 1 << 14))",
}
TO_WHAT_IS_SENT = {
    "pipes": "there(*pipes())",
    "files": "there(*files())",
    "command line and environment": "there(sys.argv, sys.orig_argv, dict(os.environ), sys.flags)",
    "standard input": "there(sys.stdin.read())",
}


@pytest.mark.parametrize("way", TO_CALLS | TO_WHAT_IS_SENT)
def test_no_call_is_seen_before_its_turn(way: str, tmp_path: Path) -> None:
    """That each way sees the call that is going on shows that it looks well."""
    program = SEARCH.replace("WAY", (TO_CALLS | TO_WHAT_IS_SENT)[way]).replace("GRADER", repr(str(Path(__file__).parents[3] / "solvers")))
    calls = [Call("one", ("plain-271828182845",)), Call("one", (HIDDEN,))]
    first, second = run(written(tmp_path / "in", program) / "solution.py", calls, 20, walls=True)
    assert (first.value, second.value) == (False, way in TO_CALLS), (first.failure, second.failure)


def test_an_answer_that_is_given_early_is_the_answer(tmp_path: Path) -> None:
    """Who answers before the function returns sees the next call early, and is judged by what it wrote without knowing that."""
    program = """
import os
def write(text):
    for number in range(3, 64):
        try:
            os.write(number, text)
        except OSError:
            continue
def one(argument):
    write(b'{"value": "early"}\\n')
    return argument
"""
    found = run(written(tmp_path / "in", program) / "solution.py", [Call("one", (1,)), Call("one", (2,))], 10, walls=True)
    assert [one.value for one in found] == ["early", 1]
