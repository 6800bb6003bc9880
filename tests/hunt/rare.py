"""Questions with options that other drawn questions never have: transformers, chips of a technology, transfers beside computations."""

from random import Random
from typing import Any

import yaml

from crossopt.instances.accelerator.question import AcceleratorQuestion
from crossopt.instances.memory.question import MemoryQuestion
from crossopt.instances.question import read_again
from tests.solvers.accelerator.drawn import question_of

_PARTS = {
    "compute_area": ["320 mm^2", "400 mm^2"],
    "compute_power": ["120 W", "200 W"],
    "l1_area": ["20 mm^2", "30 mm^2"],
    "l2_area": ["30 mm^2", "60 mm^2"],
    "l2_power": ["60 W", "110 W"],
    "registers_area": ["30 mm^2", "40 mm^2"],
    "hbm_power": ["30 W", "70 W"],
    "hbm_stacks": [2, 5],
}
_LIMITS = {"die_area": "815 mm^2", "package_area": "1700 mm^2", "power": "400 W"}


def transformer_on_chips(seed: int) -> AcceleratorQuestion:
    """A transformer, perhaps of experts, on chips of a template or of a technology."""
    random = Random(f"transformer {seed}")
    shape: dict[str, Any] = {"layers": random.randint(1, 2), "hidden": 64, "heads": 4, "ffn": random.choice((96, 256))}
    shape |= {"vocabulary": random.choice((200, 5000)), "sequence": random.choice((8, 32))}
    shape |= {"kv_heads": random.choice((1, 2))} if random.random() < 0.4 else {}
    shape |= {"gated": True} if random.random() < 0.4 else {}
    shape |= {"rotary": random.random() < 0.5} if random.random() < 0.4 else {}
    shape |= {"experts": 4, "experts_per_token": random.choice((1, 2))} if random.random() < 0.4 else {}
    asks: dict[str, Any] = {"kind": "accelerator", "devices": random.randint(1, 3), "batch": random.choice((2, 4, 8))}
    asks |= {"memory": random.choice(("80 GiB", "3 MB", "1 MB")), "bandwidth": random.choice(("1 GB/s", "100 GB/s"))}
    asks |= {"passes": "forward"} if random.random() < 0.3 else {}
    asks |= {"tensor": [1, 2]} if asks["devices"] > 1 and random.random() < 0.6 else {}
    if random.random() < 0.6:
        parts = {name: _PARTS[name] for name in random.sample(sorted(_PARTS), random.randint(1, 3))}
        small = {"compute_area": "320 mm^2", "compute_power": "120 W"} if random.random() < 0.7 else {}  # which leaves room for other parts
        asks["technology"] = {"name": random.choice(("accelerator-7nm", "accelerator-4nm")), **small, **parts}
        asks["technology"] |= {name: limit for name, limit in _LIMITS.items() if random.random() < 0.4}
        asks["objective"] = random.choice(("time", "time", "energy", "area"))
        asks |= {"time_limit": f"{10 ** random.uniform(-4, -2):.6f} s"} if asks["objective"] == "area" or random.random() < 0.3 else {}
    else:
        asks["chips"] = {"tensor_cores": [1, 2], "vector_cores": 1, "width": [4, 16], "depth": 8, "buffer": 2, "least_share": 0}
    if "technology" not in asks and random.random() < 0.6:
        asks["networks"] = {"first": {"transformer": shape}, "second": {"transformer": {**shape, "layers": 1}}}
    else:
        asks["transformer"] = shape
    return question_of(asks)


def memory_beside_transfers(seed: int) -> MemoryQuestion:
    """Three to five operators with transfers beside computations, some of which overwrite an input, or look at one."""
    random = Random(f"beside {seed}")
    nodes = dict[str, dict[str, Any]]()
    for place in range(random.choice((3, 4, 4, 5))):
        after = sorted(random.sample(sorted(nodes), random.randint(min(place, 1), min(place, 2))))
        nodes[f"n{place}"] = {"time": random.choice((0, 1, random.randint(2, 20))), "bytes": f"{random.randint(0, 6)} B", "after": after}
        nodes[f"n{place}"] |= {"backward": True} if place > 1 else {}
        nodes[f"n{place}"] |= {"workspace": f"{random.randint(0, 9)} B"} if random.random() < 0.4 else {}
        if after and random.random() < 0.5:
            nodes[f"n{place}"][random.choice(("in_place", "in_place", "view_of"))] = random.choice(after)
    asks = {"kind": "memory", "budget": f"{random.randint(3, 14)} B", "repetitions": random.choice((0, 1, 1, 2)), "nodes": nodes}
    asks["host"] = {"bandwidth": f"{random.choice((1, 2, 0.5))} B/s", "latency": f"{random.choice((0, 1))} s", "overlapped": True}
    asks["objective"] = random.choice(("extra_time", "time"))
    text = yaml.safe_dump(asks, sort_keys=False)
    return read_again({"text": text, "source": "question.yaml", "settings": []}, "memory")  # type: ignore[no-any-return]
