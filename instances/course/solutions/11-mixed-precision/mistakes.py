"""Likely mistakes of assignment 11: what becomes of a passage of solution.py, the points that are left, from and to, and what is told.

Where the passage is empty, the code is put at the end. A test grades each of them.
"""

MISTAKES = (
    ("the bound keeps the price of the budget", "return found - price * budget", "return found", 54, 55, "budget is not subtracted"),
    ("the budget without its price", "return found - price * budget", "return found - budget", 54, 55, "without its price"),
    (
        "layers choose by losses",
        "min(one + price * used for one, used in zip(loss, use, strict=True))",
        "sum(figure * each for figure, each in zip(min(zip(loss, use)), (1, price)))",
        54,
        55,
        "by their losses alone",
    ),
    (
        "no step in part",
        "        part = min(use_more, left)\n",
        "        part = use_more if use_more <= left else 0\n        if not part:\n            break\n",
        52,
        53,
        "left out instead of taken in part",
    ),
    (
        "steps above the hull",
        "        while len(corners) > 1 and above(corners[-2], corners[-1], point):\n            corners.pop()\n",
        "",
        52,
        53,
        "above the lower hull",
    ),
    ("the bound is rounded down", "    return total\n", "    return int(total)\n", 52, 53, "rounded down"),
    ("ties are forgotten", "    owner = {second: first for first, second in tied}\n", "    tied, owner = [], {}\n", 49, 50, "tied"),
    ("the last unit of the budget", "if more <= budget and loss < row", "if more < budget and loss < row", 49, 50, "uses the whole budget"),
    (
        "the best ratios first",
        "",
        """
def best(losses, uses, budget, tied):
    owner = {second: first for first, second in tied}
    groups = [[layer, *(b for a, b in tied if a == layer)] for layer in range(len(losses)) if layer not in owner]
    left, steps, found = budget, [], [0] * len(losses)
    for place, group in enumerate(groups):
        loss, use = ([sum(table[layer][one] for layer in group) for one in range(len(table[group[0]]))] for table in (losses, uses))
        left -= min(use)
        for (u, a), (v, b) in pairwise(hull(loss, use)):
            steps.append(((b - a) / (v - u), v - u, place, use.index(v)))
        for layer in group:
            found[layer] = use.index(min(use))
    for _, more, place, choice in sorted(steps):
        if more > left:
            break
        left -= more
        for layer in groups[place]:
            found[layer] = choice
    return found
""",
        42,
        42,
        "the best ratios are taken first",
    ),
    ("all points of sums stay", "if not points or point[1] < points[-1][1]:", "if point not in points:", 54, 55, "equals or betters"),
    (
        "corners alone",
        "    return [list(point) for point in points]\n",
        "    return [list(point) for point in hull([lost for _, lost in points], [used for used, _ in points])]\n",
        51,
        51,
        "corners of the front alone",
    ),
    ("losses before uses", "[list(point) for point in points]", "[list(point[::-1]) for point in points]", 51, 51, "are missing"),
    ("changes are left out", " + (changes[layer - 1] if choice != before else 0)", "", 52, 53, "between neighbours use is left out"),
    ("changes between equal choices", "if choice != before else 0", "if choice == before else 0", 48, 53, ""),
    (
        "the last unit of a chain",
        "if more <= budget and loss < grown",
        "if more < budget and loss < grown",
        52,
        53,
        "uses the whole budget",
    ),
)
