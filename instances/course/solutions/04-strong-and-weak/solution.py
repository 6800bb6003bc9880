"""Reference solution of assignment 4."""

Costs = list[list[int]]


def weak_model(costs: Costs, opening: list[int]) -> dict[str, object]:
    """All networks together are at most as many as there are, where the chip is built, and none where it is not."""
    on, build = names(costs, opening)
    rows = [{"terms": {names[j]: 1 for names in on} | {chip: -len(on)}, "at_most": 0} for j, chip in enumerate(build)]
    return model(costs, opening, rows)


def strong_model(costs: Costs, opening: list[int]) -> dict[str, object]:
    """Each network on its own says that the chip must be built."""
    on, build = names(costs, opening)
    return model(
        costs, opening, [{"terms": {name: 1, chip: -1}, "at_most": 0} for row in on for name, chip in zip(row, build, strict=True)]
    )


def names(costs: Costs, opening: list[int]) -> tuple[list[list[str]], list[str]]:
    """Those of the variables."""
    chips = range(len(opening))
    return [[f"network {i} on {j}" for j in chips] for i in range(len(costs))], [f"build {j}" for j in chips]


def model(costs: Costs, opening: list[int], rows: list[dict[str, object]]) -> dict[str, object]:
    """What both forms share: the objective, and one chip for each network."""
    on, build = names(costs, opening)
    objective = dict(zip(build, opening, strict=True))
    for row, prices_of_row in zip(on, costs, strict=True):
        objective |= dict(zip(row, prices_of_row, strict=True))
    one = [{"terms": dict.fromkeys(row, 1), "equals": 1} for row in on]
    return {"variables": {name: [0, 1] for name in objective}, "minimise": objective, "rows": [*one, *rows]}


def weak_bound(costs: Costs, opening: list[int]) -> float:
    """A network takes its share of a chip and pays for that share alone."""
    return float(sum(min(cost + fee / len(costs) for cost, fee in zip(row, opening, strict=True)) for row in costs))


def prices(costs: Costs, opening: list[int]) -> list[int]:
    """Dual ascent (Erlenkotter 1978): from the cheapest chip of each network, raise prices one step after another while chips have room."""
    found = [min(row) for row in costs]
    room = list(opening)
    moved = True
    while moved:
        moved = False
        for network, row in enumerate(costs):
            reached = [chip for chip, cost in enumerate(row) if cost <= found[network]]
            further = [cost - found[network] for cost in row if cost > found[network]]
            step = min([room[chip] for chip in reached] + further)
            if step > 0:
                found[network] += step
                moved = True
                for chip in reached:
                    room[chip] -= step
    return found
