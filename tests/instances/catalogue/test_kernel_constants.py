"""Constants of kernels in a device's file: whose they are by their name, and what is refused."""

from dataclasses import replace

import pytest

from crossopt.crossflow.fields import Given
from crossopt.crossflow.kernels.fitted import CollectiveConstants, ProductConstants
from crossopt.instances.catalogue.entries import DeviceEntry, completed, kernel_constants
from crossopt.instances.catalogue.registry import device, entry_text
from crossopt.instances.errors import Fault
from crossopt.instances.files.document import read_text
from crossopt.instances.files.schema import read_as

PRODUCT = {"launch": 3e-6, "matrix": 0.8, "fill": 64.0, "stream": 0.9, "step": 1e-10}
COLLECTIVE = {"step": 2e-6, "start": 1e-6, "rate": 0.4, "large_start": 1e-5, "large_rate": 1.0, "pairing": 0.0}


def test_the_first_word_of_a_kind_says_which_constants_it_has() -> None:
    assert kernel_constants("bfloat16 cublas", PRODUCT) == ProductConstants(3e-6, 0.8, 64.0, 0.9, 1e-10)
    found = kernel_constants("all_reduce NCCL", {**COLLECTIVE, "switch": 65536.0})
    assert found == CollectiveConstants(2e-6, 1e-6, 0.4, 1e-5, 1.0, 0.0, 65536.0)


@pytest.mark.parametrize(
    ("kind", "figures", "message"),
    [
        ("softmax", PRODUCT, "kernels.softmax: 'softmax' is no kind of kernels (one of bfloat16, "),
        ("fp8", {**PRODUCT, "casts": 1.0}, r"kernels.fp8.constants.casts: such kernels have no such constant \(did you mean 'cast'\?\)"),
        ("fp8", {"launch": 1e-6}, "kernels.fp8.constants.matrix: this constant is missing; "),
        ("fp8", {**PRODUCT, "fill": 0.0}, "kernels.fp8.constants.fill: 0 is out of range, a number above 0 is needed"),
        ("alltoall NCCL", COLLECTIVE, "kernels.alltoall NCCL.constants.switch: this constant is missing"),
    ],
)
def test_what_is_wrong_is_told(kind: str, figures: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(one of", r"\(one of")):
        kernel_constants(kind, figures)


@pytest.mark.parametrize(
    ("launch", "message"),
    [("3e-6", ""), ("0", "kernels.fp8 lib.constants.launch: 0 is out of range, a number above 0 is needed"), ("-1", "-1")],
)
def test_a_device_s_file_holds_them(launch: str, message: str) -> None:
    """And they change nothing else that is known of the device."""
    fitted = f'"fp8 lib": {{constants: {{launch: {launch}, matrix: 0.8, fill: 64, stream: 0.9, step: 1e-10}}, rows: 20, error: 0.05}}'
    faults = list[Fault]()
    sheet = read_as(Given[DeviceEntry], read_text(f"{entry_text('hardware', 'h100-sxm')}\nkernels: {{{fitted}}}\n", "h100.yaml"), faults)
    assert [message in fault.message for fault in faults] == [True] * bool(message)
    if sheet is not None:
        assert sheet.values["kernels"]["fp8 lib"].constants["fill"] == 64.0
        assert replace(completed(sheet, device), kernels={}) == device("h100-sxm")
