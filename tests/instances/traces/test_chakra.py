"""Chakra traces: bytes by hand, written as they were read, and every broken file in one sentence."""

import gzip
import json
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.traces import APART, EDGES, RULE, replay
from crossopt.instances.errors import InstanceError
from crossopt.instances.traces.any_form import read_any
from crossopt.instances.traces.chakra import (
    COLLECTIVE,
    COMP,
    VALUE_KINDS,
    Attribute,
    Metadata,
    Node,
    messages_in,
    metadata_in,
    node_bytes,
    node_in,
    varint,
    written,
)
from tests.paths import reference

WHOLE = {
    "int32": (-(1 << 31), (1 << 31) - 1),
    "uint32": (0, (1 << 32) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
    "uint64": (0, (1 << 64) - 1),
}
_RANGE = {**WHOLE, **{f"s{name}": WHOLE[name] for name in ("int32", "int64")}, "fixed32": WHOLE["uint32"], "fixed64": WHOLE["uint64"]}
_RANGE |= {"sfixed32": WHOLE["int32"], "sfixed64": WHOLE["int64"]}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


def values(kind: str) -> st.SearchStrategy[Any]:
    if kind in _RANGE:
        return st.integers(*_RANGE[kind])
    others = {"bool": st.booleans(), "string": TEXTS, "bytes": st.binary(max_size=4), "double": st.floats(allow_nan=False)}
    return others.get(kind, st.floats(allow_nan=False, width=32))


@st.composite
def attributes(draw: st.DrawFn) -> Attribute:
    kind = draw(st.sampled_from(list(VALUE_KINDS)))
    return Attribute(draw(TEXTS), kind, draw(values(kind)))


LONG = st.integers(0, (1 << 64) - 1)
NODES = st.builds(
    Node,
    LONG,
    TEXTS,
    st.integers(0, 7),
    st.lists(LONG, max_size=3).map(tuple),
    st.lists(LONG, max_size=3).map(tuple),
    LONG,
    LONG,
    st.lists(attributes(), max_size=3).map(tuple),
)


@given(st.lists(NODES, max_size=3), st.lists(attributes(), max_size=2).map(tuple))
def test_what_is_written_is_read_again(nodes: list[Node], more: tuple[Attribute, ...]) -> None:
    data = written(Metadata("0.0.4", more), nodes)
    first, *others = messages_in(data)
    assert metadata_in(first) == Metadata("0.0.4", more)
    assert [node_in(one) for one in others] == nodes


def test_a_node_has_the_bytes_of_the_schema() -> None:
    """Id 1, name `a`, type 7, after 300 (two bytes of seven bits), an attribute `n` that is int64 -1 (ten bytes)."""
    node = Node(1, "a", COLLECTIVE, (), (300,), attributes=(Attribute("n", "int64", -1),))
    minus = b"\xff" * 9 + b"\x01"
    assert node_bytes(node) == b"\x08\x01\x12\x01a\x18\x07\x2a\x02\xac\x02\x52\x0e\x0a\x01n\x48" + minus


def test_fields_beyond_those_that_are_read_are_skipped() -> None:
    """Numbers of every wire type beyond the schema, and an attribute `x` whose value is a list of int32: field 8."""
    more = b"\xa0\x06\x07\xaa\x06\x01x\xad\x06" + struct.pack("<f", 2.0) + b"\x52\x08\x0a\x01x\x42\x03\x0a\x01\x05"
    assert node_in(node_bytes(Node(1, "a")) + more) == Node(1, "a")


LARGE = [pytest.param("chakra_pytorch_rank0.et.gz", marks=pytest.mark.slow), "chakra_rank0.json.gz"]


@pytest.mark.data
def test_every_public_sample_is_written_byte_for_byte() -> None:
    """Samples of ASTRA-sim, which have no fields beyond those that are read."""
    paths = sorted(reference("network").glob("chakra/*/*.et"))
    assert paths
    for path in paths:
        first, *others = messages_in(path.read_bytes())
        assert written(metadata_in(first), map(node_in, others)) == path.read_bytes(), path


@pytest.mark.data
@pytest.mark.parametrize("name", LARGE)
def test_protobuf_and_json_of_a_public_trace_are_one_graph(name: str) -> None:
    """Longest path over data edges 46,140 us, counted by its publisher's numbers; 181,878 edges, 1,277 control edges that dangle.

    One device cannot run its 292,828 us of kernels in that: in turns nothing of one resource overlaps, and the device hardly ever waits."""
    told = json.loads(reference("traces/expected.json").read_text(encoding="utf-8"))[name]
    found = read_any(reference(f"traces/{name}"))
    graph = found.trace.graph
    data = graph.reasons == EDGES.index("data")
    assert (len(graph), int(data.sum())) == (told["nodes"], told["data_edges"])
    assert (int((graph.durations > 0).sum()), int(graph.durations.sum())) == (told["with_duration"], told["sum_duration_us"] * 1000)
    assert replay(replace(graph, before=graph.before[data], after=graph.after[data])).span == 46_140_000
    again = replay(graph)
    assert found.trace.assumed == f"{RULE}; {APART}", "five all-reduces behind calls of the host, and nothing behind them"
    for resource in range(len(graph.resources)):
        own = np.flatnonzero(graph.places == resource)
        own = own[np.lexsort((again.ends[own], again.begins[own]))]
        assert (again.begins[own][1:] >= again.ends[own][:-1]).all()
    assert 292_828_000 <= again.span < 300_000_000
    assert any(f"{told['dangling']:,} control edges" in remark for remark in found.remarks) == (told["dangling"] > 0)


def put(folder: Path, *nodes: Node, version: str = "0.0.4") -> Path:
    (folder / "x.et").write_bytes(written(Metadata(version), nodes))
    return folder / "x.et"


A, B = Node(1, "a", COMP, duration_micros=5), Node(2, "b", COMP, data_deps=(1,), duration_micros=7)


def test_starts_order_a_stream_and_leave_gaps(tmp_path: Path) -> None:
    """a 10-15, c 15-16, b 20-27 on one device: b waits for a, c stands between, and 4 us of b are unexplained; 17 us in all."""
    late = [replace(A, start_micros=10), replace(B, start_micros=20), Node(3, "c", COMP, start_micros=15, duration_micros=1)]
    found = read_any(put(tmp_path, *late))
    assert (found.trace.span, replay(found.trace.graph).span) == (17_000, 17_000)
    assert [(name, int(took)) for name, took in zip(found.trace.graph.names, found.trace.graph.durations, strict=True)][-1] == (
        "gap",
        4_000,
    )


@pytest.mark.parametrize(
    ("nodes", "told"),
    [
        ((A, replace(B, id=1, data_deps=())), "node 1: the id is given twice, to the nodes at places 0 and 1"),
        ((replace(A, data_deps=(2,)), B), "edges: operations depend on each other in a cycle: "),
        ((replace(A, type=9),), "node 1: 9 is no type of a node (1 to 7 are)"),
        ((replace(A, duration_micros=(1 << 64) - 5),), "node 1: its time is beyond any trace, or below 0"),
        ((), "there is no node in this trace"),
    ],
)
def test_what_makes_no_graph_is_told(tmp_path: Path, nodes: tuple[Node, ...], told: str) -> None:
    with pytest.raises(InstanceError) as error:
        read_any(put(tmp_path, *nodes))
    assert told in str(error.value)


def test_ids_that_no_node_has_are_left_out_and_told(tmp_path: Path) -> None:
    found = read_any(put(tmp_path, A, replace(B, data_deps=(1, 77))))
    assert [EDGES[reason] for reason in found.trace.graph.reasons] == ["data", "stream"]
    assert found.remarks[0] == "1 edge names an id that no node has: left out"


@pytest.mark.parametrize(("version", "remarked"), [("", True), ("0.0.4", False)])
def test_a_file_without_a_version_of_its_schema_has_a_remark(tmp_path: Path, version: str, remarked: bool) -> None:
    remarks = read_any(put(tmp_path, A, B, version=version)).remarks
    assert any("no version of its schema" in remark for remark in remarks) is remarked


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (
            written(Metadata("0.0.4"), [A, B])[:-3],
            "this is no Chakra trace that can be read: byte 18: a message of 12 bytes does not fit into the 9 that are left",
        ),
        (varint(1 << 32), "this is no Chakra trace that can be read: byte 0: a message of 4,294,967,296 bytes does not fit into the 0"),
        (b"\xff" * 12, "byte 0: the length of a message is damaged (fetch it again, or convert it anew)"),
        (written(Metadata("0.0.4"), [A]) + b"\x05\x12\x02\xff\xfea", "a message of 5 bytes is damaged (fetch it again"),
        (written(Metadata("0.0.1"), [A]), "the schema '0.0.1' is not known (known: 0.0.4, "),
        (b"", "the file is empty"),
    ],
)
def test_broken_files_are_told_with_the_byte(tmp_path: Path, data: bytes, told: str) -> None:
    path = tmp_path / "x.et"
    path.write_bytes(data)
    with pytest.raises(InstanceError) as error:
        read_any(path)
    assert told in str(error.value)


@given(st.data())
def test_no_flipped_bit_and_no_cut_ends_in_anything_but_a_sentence(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    whole = bytearray(written(Metadata("0.0.4", (Attribute("schema", "string", "1.0.1"),)), [A, B, Node(3, "c", COLLECTIVE)]))
    bit = data.draw(st.integers(0, 8 * len(whole) - 1))
    whole[bit // 8] ^= 1 << bit % 8
    path = tmp_path_factory.getbasetemp() / "flipped.et"
    path.write_bytes(bytes(whole[: data.draw(st.integers(0, len(whole)))]))
    try:
        read_any(path)
    except InstanceError as error:
        assert "nothing" in str(error)


@pytest.mark.process
def test_protobuf_is_imported_only_for_chakra_files(tmp_path: Path) -> None:
    path = put(tmp_path, A, B)
    program = (
        "import sys\nfrom pathlib import Path\nimport crossopt.reports.cli\n"
        "from crossopt.instances.traces.any_form import read_any\nimport crossopt.reports.launching.chakra\n"
        f"print('google.protobuf' in sys.modules, len(read_any(Path({str(path)!r})).trace.graph), 'google.protobuf' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=600).stdout == (
        "False 2 True\n"
    )


def test_gzip_bombs_and_cut_packings_are_refused(tmp_path: Path) -> None:
    bomb, cut = tmp_path / "bomb.et.gz", tmp_path / "cut.et.gz"
    bomb.write_bytes(gzip.compress(bytes(9 << 20)))
    cut.write_bytes(gzip.compress(written(Metadata("0.0.4"), [A, B]))[:-9])
    flipped = tmp_path / "flipped.et.gz"
    packed = bytearray(gzip.compress(written(Metadata("0.0.4"), [A, B]), mtime=0))
    packed[-6] ^= 1  # of the sum at the end
    flipped.write_bytes(packed)
    wrong = (
        (bomb, "it has more than 8 MiB, from a file of "),
        (cut, "the gzip file ends too early"),
        (flipped, "broken: crc check failed"),
    )
    for path, told in wrong:
        with pytest.raises(InstanceError, match=told):
            read_any(path)
