"""Likely mistakes of assignment 2: what becomes of a passage of solution.py, the points that are left, from and to, and what is told.

Where the passage is empty, the code is put at the end. A test grades each of them.
"""

MISTAKES = (
    (
        "the best ratios first",
        "",
        """
def best_by_table(sizes, values, capacity):
    kept = []
    for place in sorted(range(len(sizes)), key=lambda place: -values[place] / sizes[place]):
        if sizes[place] <= capacity:
            kept.append(place)
            capacity -= sizes[place]
    return kept
""",
        30,
        50,
        "the best ratios are taken first",
    ),
    (
        "the largest values first",
        "",
        """
def best_by_table(sizes, values, capacity):
    kept = []
    for place in sorted(range(len(sizes)), key=lambda place: -values[place]):
        if sizes[place] <= capacity:
            kept.append(place)
            capacity -= sizes[place]
    return kept
""",
        30,
        40,
        "fewer than by the best set",
    ),
    (
        "a table that keeps an activation twice",
        "",
        """
def best_by_table(sizes, values, capacity):
    best = [(0, [])] * (capacity + 1)
    for place, (size, value) in enumerate(zip(sizes, values)):
        for room in range(size, capacity + 1):
            more = best[room - size]
            if more[0] + value > best[room][0]:
                best[room] = (more[0] + value, more[1] + [place])
    return best[capacity][1]
""",
        30,
        40,
        "an activation is kept twice",
    ),
    (
        "the last column of the table is left out",
        "kept, left = [], capacity",
        "kept, left = [], max(0, capacity - 1)",
        40,
        50,
        "fills the memory exactly is left out",
    ),
    (
        "the relaxation keeps nothing in part",
        "        part = min(size, left)\n",
        "        part = size if size <= left else 0\n",
        45,
        55,
        "kept whole",
    ),
    (
        "the relaxation goes by values",
        "key=lambda item: item[0] / item[1]",
        "key=lambda item: -item[1]",
        40,
        50,
        "largest values are taken first",
    ),
    (
        "the relaxation goes by sizes",
        "key=lambda item: item[0] / item[1]",
        "key=lambda item: item[0]",
        40,
        50,
        "smallest sizes are taken first",
    ),
    ("the relaxation is rounded down", "    return worth\n", "    return int(worth)\n", 45, 55, "rounded down"),
    ("the model keeps less than fits", '"at_most": capacity}', '"at_most": capacity - 1}', 25, 40, ""),
    ("the model minimises", '"maximise"', '"minimise"', 25, 40, "fewer than by the best set"),
    (
        "the objective counts activations",
        '"maximise": dict(zip(names, values, strict=True))',
        '"maximise": dict.fromkeys(names, 1)',
        25,
        45,
        "us are spared",
    ),
    ("needs are turned round", "{names[i]: 1, names[j]: -1}", "{names[j]: 1, names[i]: -1}", 40, 50, "without"),
    ("needs are forgotten", '"rows": [weight, *pairs]', '"rows": [weight]', 40, 50, "without"),
    ("needs exclude each other", '{names[i]: 1, names[j]: -1}, "at_most": 0', '{names[i]: 1, names[j]: 1}, "at_most": 1', 40, 50, ""),
)
