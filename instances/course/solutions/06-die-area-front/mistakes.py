"""Likely mistakes of assignment 6: what becomes of a passage of solution.py, the points that are left, from and to, and what is told.

Where the passage is empty, the code is put at the end. A test grades each of them.
"""

MISTAKES = (
    ("ties are kept", "points[place][1] < points[found[-1]][1]", "points[place][1] <= points[found[-1]][1]", 20, 56, "equals in the other"),
    (
        "the front of the first figure alone",
        "    for place in sorted(range(len(points)), key=lambda place: points[place]):",
        "    for place in [min(range(len(points)), key=lambda place: points[place])]:",
        0,
        20,
        "missing",
    ),
    (
        "the last point is left out",
        "    return found\n\n\ndef hypervolume",
        "    return found[:-1] or found\n\n\ndef hypervolume",
        0,
        40,
        "",
    ),
    ("overlaps count twice", "return float(sum((after[0] - x)", "return float(sum((corner[0] - x)", 50, 57, "overlap"),
    (
        "points beyond the corner count",
        "order = [points[place] for place in front(points) if points[place][0] < corner[0] and points[place][1] < corner[1]]",
        "order = [points[place] for place in front(points)]",
        50,
        57,
        "beyond the corner",
    ),
    (
        "the few one after the other",
        "",
        """
def few(points, corner, count):
    chosen = []
    for _ in range(min(count, len(points))):
        chosen.append(max(range(len(points)), key=lambda place: hypervolume([points[one] for one in [*chosen, place]], corner)))
    return chosen
""",
        25,
        55,
        "one after the other",
    ),
    (
        "the few that are worth most alone",
        "",
        """
def few(points, corner, count):
    return sorted(range(len(points)), key=lambda place: -hypervolume([points[place]], corner))[:count]
""",
        25,
        40,
        "worth most alone",
    ),
    ("one of the few too few", "range(min(count, len(order)) - 1)", "range(max(0, min(count, len(order)) - 2))", 25, 50, "one point fewer"),
    (
        "splits are not thinned",
        "found = [more[place] for place in front([[x, y] for x, y, _ in more])]",
        "found = more[:5000]",
        35,
        45,
        "beaten by another split",
    ),
    (
        "the quickest option of each part",
        "",
        """
def splits(parts):
    return [[min(range(len(options)), key=lambda place: options[place][1]) for options in parts]]
""",
        35,
        45,
        "missing",
    ),
    (
        "splits by weighted sums",
        "",
        """
def splits(parts, right=splits):
    sums = [[sum(options[place][n] for place, options in zip(split, parts)) for n in (0, 1)] for split in right(parts)]
    hull = []
    for place, (x, y) in enumerate(sums):
        while len(hull) > 1:
            (a, b), (c, d) = sums[hull[-2]], sums[hull[-1]]
            if (c - a) * (y - b) - (d - b) * (x - a) > 0:
                break
            hull.pop()
        hull.append(place)
    return [right(parts)[place] for place in hull]
""",
        35,
        45,
        "some weighted sum",
    ),
    (
        "the quickest designs",
        "",
        """
def designs(question, count):
    chips, times = question["chips"], question["step_time"]
    every = [(t, chips[chip]["die_area"], plan, chip) for plan, row in enumerate(times) for chip, t in enumerate(row) if t is not None]
    return [{"plan": p, "chip": c, "step_time": t, "die_area": a} for t, a, p, c in sorted(every)[:count]]
""",
        35,
        47,
        "beaten",
    ),
    (
        "a limit is broken",
        "if time is not None]\n    points = [[times[plan][chip], ",
        "]\n    points = [[times[plan][chip] or 0.1, ",
        35,
        47,
        "is no design",
    ),
    ("areas are guessed", '"die_area": points[place][1]}', '"die_area": round(points[place][1], -2)}', 35, 47, "is claimed"),
)
