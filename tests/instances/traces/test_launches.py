"""Clocks that differ: work before its launch is moved there and told, whatever the shift; and files with all events twice."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.traces import replay
from crossopt.instances.errors import InstanceError
from crossopt.instances.traces.any_form import imported_kineto, read_any
from tests.instances.traces.test_kineto import Row, call, kernel, put, told


def test_work_before_its_launch_is_moved_there(tmp_path: Path) -> None:
    """A launch at 5-9 and one within it at 5-8, whose kernels are at 3-6 and 4-7: 2 and 1 us early. Both begin at 5 then, the
    second behind the first on its stream, at 8."""
    rows = [call("outer", 5, 4, 1), call("inner", 5, 3, 2), kernel("a", 3, 3, 1), kernel("b", 4, 3, 2)]
    found = read_any(put(tmp_path, *rows))
    assert [(name, begin, end) for name, kind, begin, end in told(found) if kind == "kernel"] == [("a", 0, 3), ("b", 3, 6)]
    assert found.remarks[-1] == "2 operations begin up to 2.0 us before the launch (the clocks differ): moved there"
    alone = read_any(put(tmp_path, *rows[:3]))
    assert alone.remarks == ("1 operation begins 2.0 us before the launch (the clocks differ): moved there",)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(-9, 9), st.sampled_from([7, 7, 20])), min_size=1, max_size=8))
def test_no_shift_of_device_times_ends_in_an_error(launches: list[tuple[int, int, int, int]]) -> None:
    """Calls that lie within one another or behind one another, each with work before, in or behind it, and a thread that waits for all."""
    rows, begin = list[Row](), 0
    for number, (later, took, shift, stream) in enumerate(launches):
        begin += later
        rows += [call("launch", begin, took, number), kernel("work", begin + shift, 1 + took, number, stream)]
        rows.append(call("cudaDeviceSynchronize", begin + took, took, 100 + number))
    found = imported_kineto(Path("x.json"), {"traceEvents": rows})
    early = [-shift for _, _, shift, _ in launches if shift < 0]
    moved = [one for one in found.remarks if "before the launch" in one]
    assert len(moved) == bool(early)
    assert all(one.startswith(f"{len(early)} operation") and f" {max(early)}.0 us" in one for one in moved)
    assert replay(found.trace.graph).span > 0


def test_a_file_with_all_events_twice_is_refused(tmp_path: Path) -> None:
    rows = [call("cudaLaunchKernel", 0, 1, 1), kernel("a", 1, 10, 1)]
    with pytest.raises(InstanceError, match="each of its events is in it twice"):
        read_any(put(tmp_path, *rows, *rows))
    assert read_any(put(tmp_path, *rows, rows[1])).remarks  # work alone: told as what overlaps
