"""Files of measured runs that cannot be used, and rows that cannot: every fault at once, each with its place and a remedy."""

from pathlib import Path

import pytest

from crossopt.instances.errors import InstanceError
from crossopt.instances.files.tables import LARGEST
from crossopt.instances.measured.runs import REQUIRED, read_rows

ROW = dict.fromkeys(REQUIRED, "8") | {"source": "a paper", "model": "GPT", "gpu": "A100"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "runs.csv"


def write(path: Path, *rows: dict[str, str]) -> Path:
    """A CSV file of these rows; columns that a row does not have are empty there."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [columns, *([row.get(name, "") for name in columns] for row in rows)]
    path.write_text("\n".join(",".join(cells) for cells in lines) + "\n", encoding="utf-8")
    return path


def faults(file: Path) -> list[str]:
    with pytest.raises(InstanceError) as caught:
        read_rows(file)
    return [f"{fault.line}: {fault.path}: {fault.message}" for fault in caught.value.faults]


def test_bad_cells_are_faults_of_their_row_and_all_are_told(file: Path) -> None:
    """The last row is sound, and is read."""
    bad = [
        {"heads": "many", "seq": "-1"},
        {"gbs": "6.5", "seq_parallel": "maybe"},
        {"gpus": "n/a", "tp": "inf", "dp": "nan"},
        {"mbs": "6 (recalled)"},
    ]
    rows = read_rows(write(file, *({**ROW, **cells} for cells in bad), ROW))
    assert [f"{row.line}: {fault}" for row in rows for fault in row.faults] == [
        "2: heads: 'many' is no number, a number above 0 is needed (or leave the cell empty)",
        "2: seq: '-1' is out of range, a number above 0 is needed (or leave the cell empty)",
        "3: gbs: '6.5' is no count, a whole number up to 2147483648 is needed (or leave the cell empty)",
        "3: seq_parallel: 'maybe' is neither 1 nor 0 (write one of them, or leave the cell empty)",
        "4: tp: 'inf' is no number, a number above 0 is needed (or leave the cell empty)",
        "4: dp: 'nan' is no number, a number above 0 is needed (or leave the cell empty)",
        "5: mbs: '6 (recalled)' is no number, a number above 0 is needed (or leave the cell empty)",
    ]
    assert rows[-1].counts["heads"] == 8


def test_missing_and_repeated_columns_are_faults(file: Path) -> None:
    file.write_text(",".join([*REQUIRED[1:], "Source", "gpu"]) + "\n", encoding="utf-8")
    assert faults(file) == [
        "1: gpu: the column is there twice (keep one)",
        "1: source: this column is missing (is 'Source' meant? leave its cells empty where nothing is known)",
    ]


def test_a_row_of_another_length_is_a_fault_of_that_row(file: Path) -> None:
    write(file, ROW)
    file.write_text(file.read_text(encoding="utf-8") + "a table,2,3\n", encoding="utf-8")
    sound, short = read_rows(file)
    assert sound.faults == ()
    assert short.texts["source"] == "a table"
    assert short.faults == ("the row has 3 cells, the header has 13 (put a cell that holds a comma in double quotes)",)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "a header of columns"),
        (b"source;model\n1;2\n", "a header of columns"),
        (",".join(REQUIRED).encode() + b"\n", "there are no rows below the header"),
        (",".join(REQUIRED).encode() + b'\n"never closed,', "this is not CSV"),
        (b"source,\xff\n", "byte 0xff is not UTF-8 text"),
        (b"source,\0\n", "this is not text: it holds the control character 0x00"),
        (b"source,a\nb,\x1b[31m\n", "2: : this is not text: it holds the control character 0x1b"),
        (b"source,\x07\x07\n", "1: : this is not text: it holds the control character 0x07"),
        ("source,\x9b31m\n".encode(), "1: : this is not text: it holds the control character 0x9b"),
    ],
)
def test_what_is_no_table_is_refused_in_a_sentence(data: bytes, message: str, file: Path) -> None:
    file.write_bytes(data)
    assert message in faults(file)[0]


def test_a_file_that_is_too_large_is_not_read(file: Path) -> None:
    with file.open("wb") as large:
        large.truncate(LARGEST + 1)
    assert "this file is larger than" in faults(file)[0]


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    assert "this is a directory" in faults(tmp_path)[0]
    assert "there is no such file" in faults(tmp_path / "nothing.csv")[0]
