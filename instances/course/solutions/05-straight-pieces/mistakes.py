"""Likely mistakes of assignment 5: what becomes of a passage of solution.py, the points that are left, from and to, and what is told.

Where the passage is empty, the code is put at the end. A test grades each of them.
"""

MISTAKES = (
    (
        "the error at the geometric mean",
        "max(sinh(log(q / p) / 2) ** 2 for",
        "max(sqrt(q / p) + sqrt(p / q) - 2 for",
        45,
        56,
        "geometric mean",
    ),
    (
        "absolute errors",
        "max(sinh(log(q / p) / 2) ** 2 for",
        "max(sinh(log(q / p) / 2) ** 2 * 2 / (p + q) for",
        45,
        56,
        "errors are absolute",
    ),
    (
        "the first chord alone",
        "in pairwise(points))\n\n\ndef chord",
        "in pairwise(points[:2]))\n\n\ndef chord",
        45,
        56,
        "the first chord alone",
    ),
    ("the error of tangents", "max(sinh(log(q / p) / 2) ** 2 for", "max(tanh(log(q / p) / 2) ** 2 for", 45, 56, "error of tangents"),
    (
        "chords at equal distances",
        "low * (high / low) ** (place / pieces)",
        "low + (high - low) * place / pieces",
        40,
        46,
        "equal distances",
    ),
    ("chords with the step of tangents", "longest = 2 * asinh(sqrt(error))", "longest = 2 * atanh(sqrt(error))", 40, 52, ""),
    (
        "one chord more",
        "pieces = max(1, ceil(log(high / low) / longest - ROUNDING))",
        "pieces = 1 + max(1, ceil(log(high / low) / longest - ROUNDING))",
        45,
        52,
        "one point too many",
    ),
    (
        "tangents at the ends",
        "",
        """
def tangent_points(low, high, error):
    count = max(1, ceil(log(high / low) / (2 * atanh(sqrt(error)))))
    return [low * (high / low) ** (place / count) for place in range(count + 1)]
""",
        30,
        55,
        "the outermost tangents",
    ),
    (
        "tangents half a step from the ends",
        "    before = step - log1p(tanh(step / 2))\n",
        "    before = step / 2\n",
        40,
        50,
        "the pieces are off",
    ),
    ("tangents with the step of chords", "longest = 2 * atanh(sqrt(error))", "longest = 2 * asinh(sqrt(error))", 35, 60, ""),
    (
        "weights are swapped",
        "    return found\n",
        "    return [found[place + 1] if one == place else found[place] if one == place + 1 else 0.0 for one in range(len(points))]\n",
        45,
        55,
        "the two weights are swapped",
    ),
    (
        "weights on the ends",
        "",
        """
def weights(points, area):
    share = (area - points[0]) / (points[-1] - points[0])
    return [1 - share, *[0.0] * (len(points) - 2), share]
""",
        45,
        55,
        "no neighbours",
    ),
    ("the bound is the cost of the area", '"bound": min(lower)', '"bound": min(costs)', 45, 56, "the bound is the cost of the area"),
    ("the bound by chords", '"bound": min(lower)', '"bound": min(costs) * (1 + error)', 45, 56, "above the cost of a design"),
    ("the largest area", '"area": area', '"area": high', 45, 56, ""),
    ("the slope is forgotten", "costs = [work / x + slope * x for", "costs = [work / x for", 45, 56, ""),
)
