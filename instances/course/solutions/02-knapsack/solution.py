"""Reference solution of assignment 2."""


def best_by_table(sizes: list[int], values: list[int], capacity: int) -> list[int]:
    """A row of the table for each activation, then back from the last row."""
    rows = [[0] * (capacity + 1)]
    for size, value in zip(sizes, values, strict=True):
        last = rows[-1]
        rows.append([max(last[c], last[c - size] + value) if size <= c else last[c] for c in range(capacity + 1)])
    kept, left = [], capacity
    for place in reversed(range(len(sizes))):
        if rows[place + 1][left] != rows[place][left]:
            kept.append(place)
            left -= sizes[place]
    return kept


def relaxation(sizes: list[int], values: list[int], capacity: int) -> float:
    """The best ratios first, the last one in part."""
    worth, left = 0.0, float(capacity)
    for size, value in sorted(zip(sizes, values, strict=True), key=lambda item: item[0] / item[1]):
        part = min(size, left)
        worth += value * part / size
        left -= part
    return worth


def model(sizes: list[int], values: list[int], capacity: int) -> dict[str, object]:
    """One row."""
    return model_with_needs(sizes, values, capacity, [])


def model_with_needs(sizes: list[int], values: list[int], capacity: int, needs: list[list[int]]) -> dict[str, object]:
    """A further row for each pair: keep i <= keep j."""
    names = [f"keep {place}" for place in range(len(sizes))]
    weight = {"terms": dict(zip(names, sizes, strict=True)), "at_most": capacity}
    pairs = [{"terms": {names[i]: 1, names[j]: -1}, "at_most": 0} for i, j in needs]
    return {
        "variables": {name: [0, 1] for name in names},
        "maximise": dict(zip(names, values, strict=True)),
        "rows": [weight, *pairs],
    }
