"""An autograder for Gradescope as one zip: `setup.sh`, `run_autograder` and a wheel of this package, without reference solutions.

Gradescope unpacks it to /autograder/source, runs setup.sh once as it builds its image, copies run_autograder to /autograder and runs it for
each submission: that lies in /autograder/submission, who handed it in is told in /autograder/submission_metadata.json (`users`, each with
`email`), and /autograder/results/results.json is read in the end (gradescope-autograders.readthedocs.io: "Autograder Specifications",
"Submission Metadata"; read in November 2026). The image is Ubuntu with a Python of its own, which may be older than this package needs: so
uv fetches one.
"""

import base64
import hashlib
import io
import shlex
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import crossopt
from crossopt.solvers.grading.marks import Assignment

_ROOMS = ("crossflow", "formulation", "instances", "reports", "solvers")
_LEFT_OUT = ("instances/course/solutions/", "reports/gallery/")
_EXECUTABLE, _PLAIN = 0o100755 << 16, 0o100644 << 16
_EPOCH = (2026, 1, 1, 0, 0, 0)
"""A time of all files, so that the same package makes the same zip."""
_SETUP = """#!/usr/bin/env bash
# Once, as the image is built: a Python of its own, and crossopt in it.
set -euo pipefail
apt-get update -y
apt-get install -y python3 python3-venv
python3 -m venv /autograder/tools
/autograder/tools/bin/pip install --quiet uv
/autograder/tools/bin/uv venv --quiet --python 3.11 /autograder/env
/autograder/tools/bin/uv pip install --quiet --python /autograder/env/bin/python /autograder/source/{wheel}
/autograder/env/bin/crossopt compile
"""
_RUN = """#!/usr/bin/env bash
# For each submission. Exit code 3 is a submission that could not be looked at: its results say so.
set -euo pipefail
export CROSSOPT_COURSE_SEED={seed}
student=$(/autograder/env/bin/python -c '
import json
users = json.load(open("/autograder/submission_metadata.json"))["users"]
print(min(user["email"] or user["name"] for user in users))
')
/autograder/env/bin/crossopt grade {assignment} /autograder/submission --student "$student"{unconfined} \\
    --format gradescope --out /autograder/results/results.json || [ $? -eq 3 ]
"""


def autograder(assignment: Assignment, word: str, unconfined: bool) -> bytes:
    """The zip. Of several who hand in together the first by their addresses says which cases are drawn."""
    name, wheel = _wheel()
    run = _RUN.format(seed=shlex.quote(word), assignment=assignment.name, unconfined=" --unconfined" if unconfined else "")
    files = {
        "setup.sh": (_SETUP.format(wheel=name).encode(), _EXECUTABLE),
        "run_autograder": (run.encode(), _EXECUTABLE),
        name: (wheel, _PLAIN),
    }
    return _zipped(files)


def _wheel() -> tuple[str, bytes]:
    """This package as a wheel, by its name (PEP 427): its files, and what is known of it where it is installed."""
    known = distribution("crossopt")
    info = f"crossopt-{known.version}.dist-info"
    root = Path(crossopt.__file__).parent
    found = {f"crossopt/{path.relative_to(root).as_posix()}": path.read_bytes() for path in _files(root)}
    said = {f"{info}/METADATA": known.read_text("METADATA") or known.read_text("PKG-INFO") or ""}
    said[f"{info}/entry_points.txt"] = known.read_text("entry_points.txt") or ""
    said[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: crossopt\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = found | {name: text.encode() for name, text in said.items()}
    lines = [f"{name},sha256={_hash(data)},{len(data)}" for name, data in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,", ""]).encode()
    return f"crossopt-{known.version}-py3-none-any.whl", _zipped({name: (data, _PLAIN) for name, data in files.items()})


def _files(root: Path) -> list[Path]:
    """What is installed: the rooms without caches and solutions, and what lies beside them of the package."""
    rooms = [path for room in _ROOMS for path in sorted((root / room).rglob("*")) if path.is_file() and "__pycache__" not in path.parts]
    own = [path for path in rooms if not path.relative_to(root).as_posix().startswith(_LEFT_OUT)]
    return [root / "__init__.py", root / "py.typed", *own]


def _hash(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _zipped(files: dict[str, tuple[bytes, int]]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (data, mode) in files.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr, entry.compress_type = mode, zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return made.getvalue()
