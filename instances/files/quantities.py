"""The annotated types in which instances and registries are written: a number with its dimension, and options to choose from."""

from typing import Annotated, TypeAlias

from crossopt.instances.files.schema import Bounds, Choice, Unit

Area: TypeAlias = Annotated[float, Unit("area")]
Power: TypeAlias = Annotated[float, Unit("power")]
Bytes: TypeAlias = Annotated[float, Unit("bytes")]
Bandwidth: TypeAlias = Annotated[float, Unit("bandwidth")]
Frequency: TypeAlias = Annotated[float, Unit("frequency")]
Duration: TypeAlias = Annotated[float, Unit("time")]
Voltage: TypeAlias = Annotated[float, Unit("voltage")]
Length: TypeAlias = Annotated[float, Unit("length")]
Throughput: TypeAlias = Annotated[float, Unit("throughput")]
Energy: TypeAlias = Annotated[float, Unit("energy")]
EnergyPerBit: TypeAlias = Annotated[float, Unit("energy_per_bit")]
PowerPerArea: TypeAlias = Annotated[float, Unit("power_per_area")]
PowerPerBit: TypeAlias = Annotated[float, Unit("power_per_bit")]
AreaPerBit: TypeAlias = Annotated[float, Unit("area_per_bit")]
PerLength: TypeAlias = Annotated[float, Unit("per_length")]
Money: TypeAlias = Annotated[float, Unit("money")]
PricePerEnergy: TypeAlias = Annotated[float, Unit("price_per_energy")]
PricePerArea: TypeAlias = Annotated[float, Unit("price_per_area")]
Ratio: TypeAlias = Annotated[float, Unit("ratio"), Bounds(0.0, 1.0)]
Positive: TypeAlias = Annotated[int, Bounds(1)]

AreaChoice: TypeAlias = Annotated[tuple[float, ...], Unit("area"), Choice()]
PowerChoice: TypeAlias = Annotated[tuple[float, ...], Unit("power"), Choice()]
BandwidthChoice: TypeAlias = Annotated[tuple[float, ...], Unit("bandwidth"), Choice()]
RatioChoice: TypeAlias = Annotated[tuple[float, ...], Unit("ratio"), Bounds(0.0, 1.0), Choice()]
CountChoice: TypeAlias = Annotated[tuple[int, ...], Bounds(1), Choice()]
