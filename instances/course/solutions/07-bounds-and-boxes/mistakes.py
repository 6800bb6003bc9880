"""Likely mistakes of assignment 7: what becomes of a passage of solution.py, the points that are left, from and to, and what is told.

Where the passage is empty, the code is put at the end. A test grades each of them.
"""

MISTAKES = (
    ("kinds are not told apart", "for devices in kinds:", "for devices in [sum(kinds)]:", 50, 57, "different kinds are taken for equal"),
    (
        "no symmetry at all",
        "",
        "\ndef count(operators, kinds):\n    return sum(kinds) ** operators\n",
        50,
        57,
        "no two placements are taken for the same",
    ),
    (
        "no device stays empty",
        "equal = [sum(row[: devices + 1]) for row in groups]",
        "equal = [row[devices] if devices < len(row) else 0 for row in groups]",
        50,
        57,
        "every device is used",
    ),
    (
        "kinds are multiplied",
        "",
        """
def count(operators, kinds, right=count):
    found = 1
    for kind in kinds:
        found *= right(operators, [kind])
    return found
""",
        50,
        57,
        "",
    ),
    (
        "devices are renamed across kinds",
        "",
        """
def representative(places, kinds):
    names = {}
    return [names.setdefault(place, len(names)) for place in places]
""",
        45,
        57,
        "",
    ),
    (
        "devices are not renamed",
        "    return [names[place] for place in places]\n",
        "    return places\n",
        45,
        57,
        "not the least such list",
    ),
    ("the upper corner", "for _ in range(100):", "for _ in range(0):", 40, 46, "the upper corner"),
    ("a price that is not searched", "for _ in range(100):", "for _ in range(2):", 40, 52, ""),
    ("the price is not taken off", "+ price * (sum(taken) - area)", "+ price * sum(taken)", 40, 46, "it is no bound"),
    ("a box without a chip has a bound", "    if sum(low) > area:\n        return None\n", "", 40, 46, "None says so"),
    ("whole areas", "return best\n", "return best + 1.0\n", 40, 46, "it is no bound"),
    ("no tree", '"tree": tree(root)', '"tree": None', 20, 28, "not refuted"),
    (
        "nothing is pruned",
        "if box not in cuts or least(box) >= value:\n            return None\n        lower, upper = parts(box, *cuts[box])",
        "if single(box):\n            return None\n        cuts.setdefault(box, cuts_of(box)[0])\n"
        "        lower, upper = parts(box, *cuts[box])",
        35,
        41,
        "refuted already",
    ),
    ("pruned a little early", "least(box) >= value:", "least(box) >= 0.99 * value:", 20, 28, "not refuted"),
    ("the first good chip", "while heap and heap[0][0] < value:", "while False:", 20, 28, ""),
    ("a faked value", '"value": value', '"value": 0.9 * value', 20, 28, "is claimed"),
)
