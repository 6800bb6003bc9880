"""A device in several number formats: bits of a value, and the peak of each format, its own or a stated one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from crossopt.crossflow.hardware import Hardware, Memory
from crossopt.crossflow.workload import Precision
from crossopt.instances.catalogue.entries import DeviceEntry
from crossopt.instances.catalogue.registry import build_device

Format = Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int16", "int8", "int4", "fp4"]
BITS: Final[Mapping[str, float]] = {
    "fp32": 32.0,
    "tf32": 32.0,
    "bf16": 16.0,
    "fp16": 16.0,
    "int16": 16.0,
    "fp8": 8.0,
    "int8": 8.0,
    "fp4": 4.5,
    "int4": 4.0,
}
"""Bits of a value in memory. In fp4, 16 values share an 8-bit scale (NVFP4); tf32 is stored as fp32."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device in every format that is asked for."""

    name: str
    base: Format
    formats: dict[str, Hardware]
    known: tuple[str, ...] = ()
    """Formats of which a peak is known, offered or not."""
    per_node: int = 1


_NO_MEMORY = Memory(0.0, 0.0)
NO_DEVICE = Hardware("", 0.0, 0.0, 0.0, _NO_MEMORY, _NO_MEMORY, _NO_MEMORY, _NO_MEMORY, ())
"""In place of a device that is not known yet."""


def device_in(entry: DeviceEntry, name: str, base: Format, formats: Sequence[Format], peaks: Mapping[str, float]) -> Device:
    """The device with its peak in each format: its own, or the one that is stated; a ValueError where there is none."""
    peaks = {**entry.integer_peak, **peaks}
    known: dict[Format, Precision] = {"fp32": "fp32", "bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "fp4": "fp4"}
    usual = _first(entry.peak, base)
    found = dict[str, Hardware]()
    for dtype in dict.fromkeys((base, *formats)):
        if dtype in known and dtype in entry.peak and dtype not in peaks:
            found[dtype] = build_device(entry, name, known[dtype], 2)
        elif dtype in peaks:
            own = build_device(entry, name, usual, 2)
            share = own.throughput / peaks[dtype]
            wide = entry.peak["bf16"] / peaks[dtype] if BITS[dtype] <= 8 and "bf16" in entry.peak else 1.0
            found[dtype] = replace(own, throughput=peaks[dtype], energy_per_flop=own.energy_per_flop * share, wide_share=wide)
        else:
            has = ", ".join([*entry.peak, *entry.integer_peak])
            raise ValueError(f"{name} has no peak in {dtype} (it has {has}; state one: `peaks: {{{dtype}: 500 TFLOP/s}}`)")
    return Device(name, base, found, (*entry.peak, *peaks), entry.devices_per_node)


def _first(peaks: Mapping[str, float], base: str) -> Precision:
    """A precision that the device has, the base where it is one."""
    for dtype in ("bf16", "fp16", "fp32"):
        if base == dtype and dtype in peaks:
            return dtype
    return next(dtype for dtype in ("bf16", "fp16", "fp32") if dtype in peaks)
