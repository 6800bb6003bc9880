"""Drawn questions about layers, small enough for a look at every choice."""

from random import Random

from crossopt.instances.layers.problem import Written, problem_of
from crossopt.instances.layers.question import LayersQuestion


def drawn(seed: int) -> LayersQuestion:
    """Up to 7 layers of up to 4 strategies on a chain, a tree or a graph, with up to 2 budgets and ties."""
    random = Random(seed)
    count = random.randint(1, 7)
    names = [f"layer {number}" for number in range(count)]
    budgeted = ("size", "quality")[: random.randint(0, 2)]

    def figures() -> dict[str, float]:
        return {name: random.choice((0.0, 0.25, 1.0, 1.5, 2.0, 3.75, 7.0)) for name in ("time", *budgeted)}

    layers = {name: {f"s{one}": figures() for one in range(random.randint(1, 4))} for name in names}
    shape = random.choice(("chain", "tree", "graph"))
    ends = [(number - 1 if shape == "chain" else random.randrange(number), number) for number in range(1, count)]
    ends += [tuple(random.sample(range(count), 2)) for _ in range(3)] if shape == "graph" and count > 1 else []  # type: ignore[misc]
    links = [
        (names[one], names[other], {(a, b): figures() for a in layers[names[one]] for b in layers[names[other]] if random.random() < 0.7})
        for one, other in ends
    ]
    ties = [(one, other) for one in names for other in names if one < other and layers[one].keys() == layers[other].keys()]
    ties = random.sample(ties, min(len(ties), random.choice((0, 0, 1, 2))))
    most = {name: sum(max(own[name] for own in layer.values()) for layer in layers.values()) for name in budgeted}
    budgets = {name: random.choice((0.2, 0.4, 0.6, 0.9)) * most[name] for name in budgeted}
    return LayersQuestion(f"drawn {seed}", problem_of(Written(layers, links, "time", budgets, ties)), budgets, {})
