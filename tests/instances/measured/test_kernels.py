"""Files of measured kernels: what a row becomes, and that whatever is wrong with one costs that row alone. All figures are made up."""

from pathlib import Path

import pytest

from crossopt.crossflow.kernels.fitted import FORMATS, AttentionFormat, CollectiveCall, ContextCall, ExpertCall, GenerationCall, ProductCall
from crossopt.instances.errors import InstanceError
from crossopt.instances.measured.kernels import NEEDED, Kernel, Of, kernels_in, read_kernels
from tests.every import every
from tests.paths import INSTANCES, reference

PRODUCT = {"gpu": "H100", "kernel": "a library", "dtype": "fp8", "m": "128", "n": "4096", "k": "2048", "time_us": "14.5"}
ATTENTION = {
    "gpu": "H100", "engine": "an engine 1.0", "op": "context", "attn_dtype": "bfloat16", "kv_cache_dtype": "fp8", "heads": "32",
    "kv_heads": "8", "head_dim": "128", "window": "0", "batch": "4", "isl": "2048", "step": "0", "time_us": "400",
}  # fmt: skip
COLLECTIVE = {"gpu": "B200", "library": "a library 2", "op": "all_reduce", "dtype": "half", "gpus": "8", "bytes": "65536", "time_us": "21"}
EXPERTS = {
    "gpu": "H200", "engine": "AnEngine", "kernel": "a kernel", "moe_dtype": "fp8_block", "num_tokens": "16", "hidden_size": "4096",
    "inter_size": "1536", "topk": "8", "num_experts": "128", "moe_tp_size": "2", "moe_ep_size": "4", "distribution": "balanced",
    "active": "", "time_us": "90",
}  # fmt: skip
ROWS: dict[Of, dict[str, str]] = {"products": PRODUCT, "attention": ATTENTION, "collectives": COLLECTIVE, "experts": EXPERTS}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "kernels.csv"


def write(path: Path, *rows: dict[str, str]) -> Path:
    columns = list(rows[0])
    path.write_text("\n".join(",".join(cells) for cells in (columns, *([row[name] for name in columns] for row in rows))), encoding="utf-8")
    return path


def one(file: Path, of: Of, changes: dict[str, str]) -> Kernel:
    found = read_kernels(write(file, {**ROWS[of], **changes}), of)
    assert found.rejected == ()
    return found.measured[0]


def reason(file: Path, of: Of, changes: dict[str, str]) -> str:
    """Why the first row is rejected; the second is sound, and is read."""
    found = read_kernels(write(file, {**ROWS[of], **changes}, ROWS[of]), of)
    assert [row.line for row in found.measured] == [3]
    assert [row.line for row in found.rejected] == [2]
    return found.rejected[0].reason


def test_a_product_becomes_a_call(file: Path) -> None:
    found = one(file, "products", {})
    assert found == Kernel(
        2,
        "h100-sxm",
        "fp8 a library",
        "fp8",
        "to 1,024 rows",
        (4096.0, 2048.0),
        ProductCall(128.0, 4096.0, 2048.0, FORMATS["fp8"]),
        pytest.approx(14.5e-6),  # type: ignore[arg-type]
    )


def test_experts_become_a_call(file: Path) -> None:
    found = one(file, "experts", {})
    assert found.call == ExpertCall(16.0, 4096.0, 768.0, 8.0, 4.0, 128.0, 3.0, FORMATS["fp8_block"])
    assert (found.kind, found.size, found.shape) == ("experts fp8_block AnEngine", "up to 64 tokens", (4096.0, 1536.0, 128.0))
    few = one(file, "experts", {"num_tokens": "2"}).call
    assert isinstance(few, ExpertCall)
    assert few.active == 16.0
    skewed = one(file, "experts", {"distribution": "power_law_1.2", "active": "40"}).call
    assert isinstance(skewed, ExpertCall)
    assert skewed.active == 40.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"distribution": "power_law_1.2"}, "leaves open how many experts are active"),
        ({"active": "129"}, "129 of 128 experts cannot be active"),
        ({"kernel": "moe_nongated"}, "experts without a gate"),
        ({"moe_ep_size": "3"}, "not shared evenly by 3 ranks"),
        ({"topk": "129"}, "fewer than the 129 of a token"),
        ({"moe_dtype": "fp7"}, "moe_dtype: 'fp7' is not understood"),
        ({"num_tokens": "1000000"}, "shorter than the arithmetic takes"),
    ],
)
def test_experts_that_cannot_be_priced_have_a_reason(changes: dict[str, str], message: str, file: Path) -> None:
    assert message in reason(file, "experts", changes)


def test_attention_is_of_a_prompt_or_of_one_more_token(file: Path) -> None:
    context = one(file, "attention", {})
    assert context.call == ContextCall(32.0, 8.0, 128.0, 0.0, 4.0, 2048.0, AttentionFormat(1.0, eight_bits=True))
    assert (context.kind, context.shape) == ("context bfloat16, keys fp8", (32.0, 8.0, 128.0, 0.0))
    generation = one(file, "attention", {"op": "generation", "isl": "1", "step": "4095", "window": ""})
    assert generation.call == GenerationCall(32.0, 8.0, 128.0, 0.0, 4.0, 4096.0, AttentionFormat(1.0, eight_bits=True))
    assert generation.kind == "generation bfloat16, keys fp8, shared heads"


@pytest.mark.parametrize(("tokens", "size"), [(1024, "up to 1,024 tokens"), (1025, "more tokens")])
def test_attention_is_summed_up_by_how_many_tokens_it_is_of(file: Path, tokens: int, size: str) -> None:
    assert one(file, "attention", {"isl": str(tokens)}).size == f"context, {size}"
    assert one(file, "attention", {"op": "generation", "isl": "1", "step": str(tokens)}).size == f"generation, {size}"


def test_heads_read_alone_where_they_are_too_many_to_share(file: Path) -> None:
    more = {"op": "generation", "isl": "1", "kv_heads": "1", "heads": "48"}
    assert one(file, "attention", more).kind.endswith("heads alone")
    assert one(file, "attention", {**more, "engine": "vllm 0.14.0"}).kind.endswith("shared heads")
    assert one(file, "attention", {**more, "heads": "1", "engine": "vllm 0.14.0"}).kind.endswith("heads alone")


def test_a_collective_becomes_a_call(file: Path) -> None:
    found = one(file, "collectives", {})
    assert found.call == CollectiveCall(8.0, 65536.0, 2.0)
    assert (found.gpu, found.kind, found.size) == ("b200", "all_reduce a library 2", "up to 64 KiB")


@every(
    ("of", "changes", "message"),
    [
        ("products", {"m": "6 (recalled)"}, "m: '6 (recalled)' is no number, a number above 0 is needed (or leave the cell empty)"),
        ("products", {"n": "6.5"}, "n: '6.5' is no count"),
        (
            "products",
            {"m": "x", "k": "y"},
            "m: 'x' is no number, a number above 0 is needed (or leave the cell empty); k: 'y' is no number",
        ),
        ("products", {"time_us": ""}, "not stated: time_us"),
        ("products", {"time_us": "0"}, "time_us: '0' is out of range"),
        ("products", {"dtype": "bf17"}, "dtype: 'bf17' is not understood (one of bfloat16, "),
        ("products", {"gpu": "abacus"}, "'abacus' is no device of the registry"),
        ("products", {"time_us": "0.1"}, "the time is shorter than the arithmetic takes at the peak of the device"),
        ("attention", {"heads": "33"}, "33 heads cannot share 8 heads of keys evenly"),
        ("attention", {"op": "both"}, "op: 'both' is not understood (context or generation)"),
        ("attention", {"step": "7"}, "a context with past tokens is not modelled"),
        ("attention", {"op": "generation"}, "generation of more than one token a sequence is not modelled"),
        ("attention", {"window": "-1"}, "window: '-1' is out of range, a number from 0 on is needed"),
        ("attention", {"kv_cache_dtype": "fp4"}, "kv_cache_dtype: 'fp4' is not understood"),
        ("collectives", {"time_us": "1e-300"}, "time_us: no kernel ends within a nanosecond"),
        ("collectives", {"gpus": "1"}, "one device exchanges nothing"),
        ("collectives", {"gpus": "16"}, "16 devices are more than a node has"),
        ("collectives", {"op": "gossip"}, "op: 'gossip' is not understood (one of all_gather, "),
    ],
)
def test_what_is_wrong_with_a_row_costs_that_row(of: Of, changes: dict[str, str], message: str, file: Path) -> None:
    assert reason(file, of, changes).startswith(message)


def test_a_row_of_another_length_costs_that_row(file: Path) -> None:
    write(file, PRODUCT)
    file.write_text(file.read_text(encoding="utf-8") + "\nH100,fp8\n", encoding="utf-8")
    found = read_kernels(file, "products")
    assert (len(found.measured), found.rejected[0].reason[:30]) == (1, "the row has 2 cells, the heade")


@pytest.mark.parametrize("of", list(NEEDED))
def test_a_missing_column_refuses_the_file(of: Of, file: Path) -> None:
    row = {name: cell for name, cell in ROWS[of].items() if name != "time_us"}
    with pytest.raises(InstanceError) as caught:
        read_kernels(write(file, row | {"time_ms": "1"}), of)
    assert [fault.path for fault in caught.value.faults] == ["time_us"]
    assert "is 'time_ms' meant?" in caught.value.faults[0].message


def test_columns_say_of_what_a_file_is(file: Path) -> None:
    assert [kernels_in(write(file, row)) for row in ROWS.values()] == list(ROWS)
    assert kernels_in(INSTANCES / "measured-sample.csv") is None


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "of", "rows"), [("gemm_small", "products", 7900), ("attention_small", "attention", 5270), ("comm_small", "collectives", 1890)]
)
def test_every_row_of_the_public_kernels_is_priced(name: str, of: Of, rows: int) -> None:
    path = reference(f"kernels/{name}.csv")
    assert kernels_in(path) == of
    found = read_kernels(path, of)
    assert (len(found.measured), found.rejected) == (rows, ())
