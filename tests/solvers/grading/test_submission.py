"""Folders and zips as they are handed in, good ones and others."""

import io
import os
import stat
import zipfile
from pathlib import Path

import pytest

from crossopt.solvers.grading.grade import graded
from crossopt.solvers.grading.running import SubmissionError, opened
from tests.solvers.grading.programs import asking

pytestmark = pytest.mark.course


def packed(path: Path, files: dict[str, bytes], mode: int = 0) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return path


def names(path: Path) -> list[str]:
    with opened(path) as folder:
        return sorted(str(found.relative_to(folder)) for found in folder.rglob("*") if found.is_file())


def test_a_zip_of_files_or_of_their_folder(tmp_path: Path) -> None:
    files = {"solution.py": b"", "more/help.py": b""}
    assert names(packed(tmp_path / "a.zip", files)) == ["more/help.py", "solution.py"]
    around = {f"mine/{name}": data for name, data in files.items()} | {"__MACOSX/mine/._solution.py": b""}
    assert names(packed(tmp_path / "b.zip", around)) == ["more/help.py", "solution.py"]
    deep = {f"x/y/z/{name}": data for name, data in files.items()}
    assert names(packed(tmp_path / "c.zip", deep)) == ["more/help.py", "solution.py"]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            ["a/solution.py", "b/solution.py"],
            "there is no solution.py at the top, but there is a/solution.py, b/solution.py (hand in the folder that solution.py lies in,",
        ),
        (["x/y/solution.py", "notes.txt"], "there is no solution.py at the top, but there is x/y/solution.py (hand in the folder"),
        (
            ["Solution.py", "b.py", "c.py", "d.py"],
            "there is no solution.py and no notebook (there is Solution.py, b.py, c.py and 1 more; copy starter.py to",
        ),
        (["solution.py/x"], "there is no solution.py and no notebook (there is x; copy starter.py"),
    ],
)
def test_what_is_there_instead_of_a_solution_is_told(files: list[str], words: str, tmp_path: Path) -> None:
    submission = packed(tmp_path / "a.zip", dict.fromkeys(files, b""))
    assert graded(asking("one"), submission, "seed", walls=False).refused.startswith(words)


def test_a_folder_without_its_links_and_caches(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "__pycache__" / "x.pyc").touch()
    (folder / "solution.py").touch()
    (folder / "link.py").symlink_to("/etc/passwd")
    (folder / "around").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    assert names(folder) == ["solution.py"]


@pytest.mark.parametrize(
    "name", ["../evil.py", "/evil.py", "a/../../evil.py", "..\\evil.py", "C:\\evil.py", "a" * 200, "a/" * 9 + "b", "b\n"]
)
def test_names_that_lead_elsewhere_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match=r"leads out of the submission|no plain name"):
        names(packed(tmp_path / "a.zip", {"solution.py": b"", name: b"x"}))
    assert not list(tmp_path.rglob("evil.py"))


def test_links_in_a_zip_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match="is a link or a device"):
        names(packed(tmp_path / "a.zip", {"solution.py": b"/etc/passwd"}, stat.S_IFLNK | 0o777))


def test_what_is_large_is_refused_before_it_is_written(tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match="5 MiB"):
        names(packed(tmp_path / "a.zip", {"solution.py": bytes(6 << 20)}))
    with pytest.raises(SubmissionError, match="200 files"):
        names(packed(tmp_path / "b.zip", {f"{number}.py": b"" for number in range(201)}))


def test_a_zip_that_lies_about_its_sizes_writes_no_more(tmp_path: Path) -> None:
    whole = packed(tmp_path / "a.zip", {"solution.py": bytes(6 << 20)}).read_bytes()
    size = (6 << 20).to_bytes(4, "little")
    (tmp_path / "a.zip").write_bytes(whole.replace(size, (100).to_bytes(4, "little")))
    with pytest.raises(SubmissionError):
        names(tmp_path / "a.zip")


@pytest.mark.parametrize("data", [b"", b"nonsense", b"PK\x03\x04" + bytes(100), b"PK\x05\x06" + bytes(18) + b"x"])
def test_nonsense_gets_one_sentence(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(data)
    if zipfile.is_zipfile(io.BytesIO(data)):
        assert names(tmp_path / "a.zip") == []
        return
    with pytest.raises(SubmissionError, match=r"a\.zip is no zip that can be read: .*hand in a folder"):
        names(tmp_path / "a.zip")


def test_a_damaged_file_in_a_zip_gets_one_sentence(tmp_path: Path) -> None:
    whole = bytearray(packed(tmp_path / "a.zip", {"solution.py": os.urandom(1000)}).read_bytes())
    whole[200] ^= 0xFF
    (tmp_path / "a.zip").write_bytes(whole)
    with pytest.raises(SubmissionError, match=r"a\.zip is no zip that can be read"):
        names(tmp_path / "a.zip")


def test_a_pipe_is_no_submission(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.zip")
    with pytest.raises(SubmissionError, match="neither a folder nor a file"):
        names(tmp_path / "a.zip")
