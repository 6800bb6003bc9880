"""What is installed: everything under one name, all that commands read, and nothing that students shall not get."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

from crossopt.solvers.grading.grade import ASSIGNMENTS
from tests.paths import INSTANCES, ROOT
from tests.solvers.grading.programs import reference

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES, DATA = PROJECT["tool"]["setuptools"]["packages"], PROJECT["tool"]["setuptools"]["package-data"]
ROOMS = ("crossflow", "formulation", "reports", "solvers")
STRANGERS = (*ROOMS, "instances", "tests")
"""Packages of someone else that have a name of ours."""


def folder_of(package: str) -> Path:
    return ROOT.joinpath(*package.split(".")[1:])


def packed() -> list[str]:
    """The files that the project file puts into a wheel, by their paths in it."""
    programs = [path for package in PACKAGES for path in folder_of(package).glob("*.py")]
    data = [path for package, patterns in DATA.items() for pattern in patterns for path in folder_of(package).glob(pattern)]
    return sorted(f"crossopt/{path.relative_to(ROOT)}" for path in (*programs, *data) if path.is_file() and path != ROOT / "setup.py")


def kept(folder: Path) -> set[str]:
    """The files below a folder as they stand in a wheel, without what running leaves behind."""
    paths = (path for path in folder.rglob("*") if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in path.parts))
    return {f"crossopt/{path.relative_to(ROOT)}" for path in paths}


def test_no_file_is_packed_twice() -> None:
    assert len(packed()) == len(set(packed()))
    assert [name for name in packed() if name.endswith("py.typed")] == ["crossopt/py.typed"]


def test_all_instances_handouts_and_registries_are_packed_but_no_solution() -> None:
    solutions = kept(INSTANCES / "course" / "solutions")
    assert len(solutions) > len(ASSIGNMENTS)
    assert {name for name in packed() if name.startswith("crossopt/instances/")} == kept(INSTANCES) - solutions - {
        "crossopt/instances/README.md"
    }


def test_all_code_is_packed_and_nothing_else() -> None:
    """Neither tests nor the gallery: a page is drawn from a result, not looked up."""
    code = {name for room in ROOMS for name in kept(ROOT / room) if name.endswith((".py", ".js", ".html", ".css", ".in"))} - kept(
        ROOT / "reports/gallery"
    )
    others = {name for name in packed() if not name.startswith("crossopt/instances/")}
    assert others == {"crossopt/__init__.py", "crossopt/__main__.py", "crossopt/py.typed", *code}


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | environment
    return subprocess.run([*map(str, command)], cwd=cwd, env=clean, capture_output=True, text=True, timeout=900, check=False)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout, as building writes beside what it builds."""
    left_behind = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "*.egg-info", "gallery")
    return Path(shutil.copytree(ROOT, tmp_path_factory.mktemp("built") / "source", ignore=left_behind))


def built(what: str, source: Path, out: Path) -> Path:
    """The archive that setuptools builds, without a network."""
    out.mkdir(exist_ok=True)
    done = run(sys.executable, "-c", f"from setuptools import build_meta; print(build_meta.build_{what}({str(out)!r}))", cwd=source)
    assert done.returncode == 0, done.stderr
    return out / done.stdout.splitlines()[-1]


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_string(archive.read(name).decode())


def names_in(wheel: Path) -> list[str]:
    """The files of the package in a wheel."""
    return sorted(name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name)


@pytest.mark.process
def test_checkout_and_source_archive_give_the_same_wheel_of_code_and_data(source: Path, tmp_path: Path) -> None:
    wheel = built("wheel", source, tmp_path / "wheel")
    assert names_in(wheel) == packed()
    assert not [name for name in names_in(wheel) if "/tests/" in name or name.endswith("setup.py")]
    with tarfile.open(built("sdist", source, tmp_path / "sdist")) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)  # since Python 3.11.4
        archive.extractall(tmp_path)
    (unpacked,) = tmp_path.glob("crossopt-*")
    assert names_in(built("wheel", unpacked, tmp_path / "again")) == packed()
    assert not (unpacked / "tests").exists()


@pytest.mark.process
@pytest.mark.parametrize("repository", ["", "https://example.org/group/project"])
def test_links_of_the_readme_lead_to_the_repository_or_are_plain_text(repository: str, source: Path, tmp_path: Path) -> None:
    """On an index of packages there are no files beside the README."""
    copy = Path(shutil.copytree(source, tmp_path / "copy"))
    project = (copy / "pyproject.toml").read_text(encoding="utf-8")
    (copy / "pyproject.toml").write_text(re.sub('^repository = ".*?"', f'repository = "{repository}"', project, flags=re.MULTILINE))
    metadata = metadata_of(built("wheel", copy, tmp_path / "wheel"))
    text = str(metadata.get_payload())
    assert "pip install" in text
    links = set(re.findall(r"\]\(([^)]+)\)", text))
    assert bool(links) == bool(repository)
    assert {link.startswith(f"{repository}/blob/main/") for link in links} <= {True}
    addresses = {f"Source, {repository}", f"Issues, {repository}/issues", f"Changelog, {repository}/blob/main/CHANGELOG.md"}
    assert set(metadata.get_all("Project-URL") or ()) == (addresses if repository else set())


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment that holds the wheel, as it is built from a copy of this folder, and what the wheel depends on."""
    place = tmp_path_factory.mktemp("wheel")
    venv.create(place / "env", with_pip=True)
    python = place / "env" / "bin" / "python"
    needed = [*PROJECT["build-system"]["requires"], *PROJECT["project"]["dependencies"]]
    if (fetched := run(python, "-m", "pip", "install", "--quiet", *needed, cwd=place)).returncode:
        pytest.skip(f"packages cannot be fetched here: {fetched.stderr.strip().splitlines()[-1]}")
    left_behind = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "*.egg-info")
    shutil.copytree(ROOT, place / "source", ignore=left_behind)
    built = run(python, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", place, place / "source", cwd=place)
    assert built.returncode == 0, built.stderr
    (wheel,) = place.glob("*.whl")
    added = run(python, "-m", "pip", "install", "--no-deps", wheel, cwd=place)
    assert added.returncode == 0, added.stderr
    return place


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder outside of the checkout, with packages of someone else that have our names."""
    for name in STRANGERS:
        (tmp_path / "others" / name).mkdir(parents=True)
        (tmp_path / "others" / name / "__init__.py").write_text("raise RuntimeError(f'{__name__} is of someone else')\n", encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_the_wheel_holds_what_the_project_file_says(installed: Path) -> None:
    (wheel,) = installed.glob("*.whl")
    assert names_in(wheel) == packed()


@pytest.mark.slow
def test_commands_work_outside_of_the_checkout_beside_packages_with_our_names(installed: Path, elsewhere: Path) -> None:
    for command in (
        "crossopt --version",
        "solve tiny --out answer.json",
        "crossopt check answer.json",
        "crossopt report answer.json",
        "crossopt list instances",
        "crossopt validate joint-vs-single-layer",
        "crossopt compare joint-vs-single-layer --help",
        "crossopt completion bash",
        "crossopt course list",
        "crossopt course release hand-out",
    ):
        program, *words = command.split()
        done = run(installed / "env" / "bin" / program, *words, cwd=elsewhere, PYTHONPATH=str(elsewhere / "others"))
        assert (command, done.returncode, done.stderr) == (command, 0, "")
    assert (elsewhere / "answer.html").stat().st_size > 10_000
    released = {path.name for path in (elsewhere / "hand-out").iterdir()}
    assert released == {*(one.name for one in ASSIGNMENTS), "phaze-lab", "README.md"}


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 3, 7])
def test_submissions_are_graded_outside_of_the_checkout(installed: Path, elsewhere: Path, number: int) -> None:
    """Two programs, and one answer that is handed in as a result."""
    asked = ASSIGNMENTS[number]
    handed = elsewhere / "handed-in"
    shutil.copytree(reference(asked), handed)
    bin_folder, others = installed / "env" / "bin", str(elsewhere / "others")
    if asked.judge is not None:
        made = run(bin_folder / "crossopt", "course", "question", cwd=elsewhere, PYTHONPATH=others)
        (handed / "question.yaml").write_text(made.stdout, encoding="utf-8")
        done = run(bin_folder / "python", "solution.py", cwd=handed, PYTHONPATH=others)
        assert done.returncode == 0, done.stderr
    done = run(bin_folder / "crossopt", "grade", str(number + 1), handed, cwd=elsewhere, PYTHONPATH=others)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == f"{asked.name}   100 of 100 points"


@pytest.mark.slow
def test_the_installed_package_is_typed_and_leaves_no_name_of_a_room_behind(installed: Path, elsewhere: Path) -> None:
    names = "*(find_spec(name) is None for name in ('instances', 'reports'))"
    program = f"import crossopt; from importlib.util import find_spec; print(crossopt.__file__, {names})"
    done = run(installed / "env" / "bin" / "python", "-c", program, cwd=elsewhere)
    folder, *absent = done.stdout.split()
    assert absent == ["True", "True"]
    assert (Path(folder).parent / "py.typed").exists()
    assert not (Path(folder).parent / "instances" / "course" / "solutions").exists()
