"""Likely mistakes of assignment 4: what becomes of a passage of solution.py, the points that are left, from and to, and what is told.

Where the passage is empty, the code is put at the end. A test grades each of them.
"""

MISTAKES = (
    (
        "the strong model is the weak one",
        "",
        "\ndef strong_model(costs, opening):\n    return weak_model(costs, opening)\n",
        35,
        40,
        "no stronger than one row for each chip",
    ),
    (
        "the weak model is the strong one",
        "",
        "\ndef weak_model(costs, opening):\n    return strong_model(costs, opening)\n",
        45,
        53,
        "stronger than one for each chip",
    ),
    (
        "every second row is strong",
        "",
        """
def strong_model(costs, opening):
    on, build = names(costs, opening)
    rows = [{"terms": {row[j]: 1 for row in on[1::2]} | {chip: -len(on[1::2])}, "at_most": 0} for j, chip in enumerate(build) if on[1:]]
    rows += [{"terms": {name: 1, chip: -1}, "at_most": 0} for row in on[::2] for name, chip in zip(row, build)]
    return model(costs, opening, rows)
""",
        35,
        50,
        "some of its rows are still weak",
    ),
    ("a chip is large enough for twice the networks", "{chip: -len(on)}", "{chip: -2 * len(on)}", 45, 53, "weaker than one for each chip"),
    ("nothing has to be built", "return model(costs, opening, rows)", "return model(costs, opening, [])", 40, 50, "not built"),
    ("a network may be on no chip", '"equals": 1', '"at_most": 1', 20, 30, "is on 0 chips"),
    (
        "openings are left out of the objective",
        "objective = dict(zip(build, opening, strict=True))",
        "objective = dict.fromkeys(build, 0)",
        20,
        30,
        "the objective says",
    ),
    ("an opening is shared by the chips", "fee / len(costs)", "fee / len(row)", 45, 55, "not of chips"),
    ("the weak bound leaves openings out", "cost + fee / len(costs)", "cost", 40, 50, "what chips cost to open is left out"),
    ("shares are rounded down", "fee / len(costs)", "fee // len(costs)", 45, 55, "rounded down"),
    (
        "the weak bound is the best cost",
        "",
        """
def weak_bound(costs, opening):
    subsets = range(1, 1 << len(opening))
    built = ([j for j in range(len(opening)) if subset >> j & 1] for subset in subsets)
    return float(min(sum(opening[j] for j in chips) + sum(min(row[j] for j in chips) for row in costs) for chips in built))
""",
        40,
        50,
        "the best cost",
    ),
    ("prices are the least costs", "    while moved:\n", "    while False:\n", 40, 50, "the least cost of its network"),
    ("prices pay too much", "    return found\n", "    return [price + 1 for price in found]\n", 40, 50, "these prices prove nothing"),
    ("prices are raised once", "    while moved:\n        moved = False\n", "    for _ in range(1):\n", 40, 55, ""),
)
