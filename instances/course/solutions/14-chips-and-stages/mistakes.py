"""Likely mistakes of assignment 14: what becomes of a passage of solution.py, the points that are left, from and to, and what is told.

Where the passage is empty, the code is put at the end. A test grades each of them.
"""

MISTAKES = (
    (
        "cycles are cut off",
        "[-(-size // units) * each, -(-size // (units * count)) * each]",
        "[size // units * each, size // (units * count) * each]",
        42,
        55,
        "cycles are not rounded up",
    ),
    (
        "rounded at the end",
        "[-(-size // units) * each, -(-size // (units * count)) * each]",
        "[-(-size * each // units), -(-size * each // (units * count))]",
        54,
        55,
        "after they are multiplied",
    ),
    ("wide vector cores", "else (width, vector)", "else (width * depth, vector)", 42, 43, "as wide as a tensor core"),
    (
        "all on all cores",
        "            if sum(kinds[other] == kinds[row] for other in busy) < own[kinds[row]]:",
        "            if False:",
        30,
        42,
        "every operator runs on all cores",
    ),
    (
        "one core each",
        "            if not running:\n                step",
        "            if False:\n                step",
        30,
        42,
        "on one core",
    ),
    ("cores without a limit", "< own[kinds[row]]:", "< count:", 30, 42, "on more cores than there are"),
    (
        "no bubble",
        "time = table[0][0] * (-(-microbatches // data) + stages - 1)",
        "time = table[0][0] * -(-microbatches // data)",
        39,
        51,
        "in which a pipeline fills",
    ),
    ("one microbatch in flight", "+ stages * sum(kept[start:end])", "+ sum(kept[start:end])", 39, 51, "stores one microbatch"),
    ("one side of a message", "+ came + goes\n                slowest", "+ goes\n                slowest", 39, 51, ""),
    ("one pipeline", "data = min(devices // stages, microbatches)", "data = 1", 33, 45, "a single pipeline"),
    (
        "the least work",
        "times.append(batch(given, limits, *found))",
        "times.append(sum(forward))",
        48,
        48,
        "all layers together",
    ),
    (
        "the most multipliers",
        "times.append(batch(given, limits, *found))",
        "times.append(-chip[0] * chip[2] * chip[3])",
        48,
        48,
        "most multipliers",
    ),
    ("the smallest first", ", reverse=True)", ")", 54, 54, "begins at the smallest"),
    ("patience in all", "best, idle = own, 0", "best = own", 56, 57, "not in a row"),
    ("no stop", "if idle == patience:", "if False:", 54, 54, "which the search does not reach"),
)
