"""Drawn questions about embedding tables, small enough for a look at every plan."""

from random import Random

from crossopt.instances.embeddings.question import EmbeddingsQuestion
from crossopt.instances.question import read_given

_CLUSTERS = ("{devices: 1}", "{devices: 2}", "{devices: 3}", "{devices: 2, devices_per_node: 1}", "{devices: 4, devices_per_node: 2}")


def drawn_text(seed: int) -> str:
    """Up to 5 tables on up to 3 devices, or 2 tables on two nodes of 2, with options of all forms and memory that may be too small."""
    random = Random(f"embeddings {seed}")
    cluster = random.choice(_CLUSTERS)
    count = random.randint(1, 2 if "4" in cluster else 3 if "3" in cluster else 5)
    objective = random.choice(("slowest_device", "step", "step", "fewest_devices"))
    within = objective == "fewest_devices" and random.random() < 0.6
    lines = ["kind: embeddings", f"objective: {objective}", f"within: {10 ** random.uniform(-3, 1):.4f} ms" if within else "", "tables:"]
    shapes = [(random.choice((4, 100, 5_000, 80_000)), random.choice((16, 64, 128))) for _ in range(3)]
    for number in range(count):
        rows, dimension = random.choice(shapes)
        figures = f"pooling: {random.choice((0.5, 1, 3, 20))}, weighted: {random.choice(('true', 'false'))}"
        figures += f", pooled: {random.choice(('true', 'true', 'false'))}, dtype: {random.choice(('fp32', 'fp16'))}"
        lines.append(f"- {{name: t{number}, rows: {rows}, dimension: {dimension}, {figures}}}")
    tight = random.choice((2, 5, 12, 40, 400))
    memory = f"hbm: {tight * random.uniform(0.5, 1.5):.3f} MB, ddr: {random.choice((0, 10, 60))} MB, ssd: {random.choice((0, 100))} MB"
    lines.append(f"cluster: {cluster[:-1]}, {memory}}}")
    shardings = random.sample(("table", "row", "column", "table-row", "table-column", "grid", "data"), 3)
    kernels = random.sample(("fused_uvm", "fused_uvm_caching", "key_value"), 1)
    shardings, kernels = ["table", *(one for one in shardings if one != "table")], ["fused", "dense", *kernels]
    lines.append(
        f"choices: {{sharding: [{', '.join(shardings)}], kernel: [{', '.join(kernels)}], columns: [1, 2], narrowest: 8, cache: [0.2], "
        f"distinct: {random.choice(('true', 'false'))}}}"
    )
    lines.append(f"batch: {random.choice((16, 128))}")
    return "\n".join(lines) + "\n"


def drawn(seed: int) -> EmbeddingsQuestion:
    """The question of a seed."""
    question: EmbeddingsQuestion = read_given(drawn_text(seed), "embeddings")
    return question
