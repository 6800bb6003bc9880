"""Likely mistakes of assignment 12: what becomes of a passage of solution.py, the points that are left, from and to, and what is told.

Where the passage is empty, the code is put at the end. A test grades each of them.
"""

MISTAKES = (
    ("inputs are dropped early", "if ends[one] >= event)", "if ends[one] > event or one == event)", 52, 53, "before the node has run"),
    (
        "the last use of all",
        "            ends[latest[source]] = event\n",
        "            for one in range(event):\n                if order[one] == source:\n                    ends[one] = event\n",
        48,
        53,
        "",
    ),
    ("nothing is dropped", "if ends[one] >= event)", "if order[one] not in order[:one])", 52, 53, "nothing is ever dropped"),
    (
        "a node without its output",
        "[sizes[node] + sum(sizes[source] for source in taken) for node, taken in enumerate(inputs)]",
        "[sum(sizes[source] for source in taken) for node, taken in enumerate(inputs)]",
        56,
        57,
        "its own output is left out",
    ),
    (
        "the largest output",
        "[sizes[node] + sum(sizes[source] for source in taken) for node, taken in enumerate(inputs)]",
        "list(sizes)",
        54,
        54,
        "the largest output",
    ),
    ("the beginning takes a slot", "return table[slots][length]", "return table[slots - 1][length]", 54, 55, "counts as a checkpoint"),
    (
        "a slot too many",
        "for more in range(1, slots + 1):",
        "slots += 1\n    for more in range(1, slots + 1):",
        54,
        55,
        "a checkpoint too many",
    ),
    ("the last step is counted", "return table[slots][length]", "return table[slots][length] + length", 54, 55, "ends in the last state"),
    ("slots are not used again", "+ row[split] for split", "+ table[0][split] for split", 51, 51, ""),
    (
        "every k-th output",
        "",
        """
def chain(times, sizes, budget):
    best, found = inf, []
    for every in range(1, len(times) + 2):
        kept = list(range(every - 1, len(times), every))
        ends = [-1, *kept, len(times)]
        used = sum(sizes[one] for one in kept) + max(sum(sizes[a + 1 : b]) for a, b in zip(ends, ends[1:]))
        time = sum(times) - sum(times[one] for one in kept)
        if used <= budget and time < best:
            best, found = time, kept
    return found
""",
        45,
        45,
        "every k-th output is kept",
    ),
    ("segments are free", "more + limit <= budget", "more <= budget", 45, 51, ""),
    ("the last byte of a chain", "more + limit <= budget", "more + limit < budget", 51, 51, "need the whole budget"),
    (
        "nothing is dropped before its last use",
        "for left in subsets(live - needed, sizes, budget - sum(sizes[one] for one in needed)):",
        "for left in [live - needed] if sum(sizes[one] for one in live | needed) <= budget else []:",
        42,
        42,
        "is returned where all",
    ),
    (
        "a budget less a byte",
        "    count = len(inputs)\n    start",
        "    count, budget = len(inputs), budget - 1\n    start",
        42,
        50,
        "",
    ),
    (
        "nothing is computed again",
        "",
        "\ndef schedule(inputs, times, sizes, budget):\n    return list(range(len(inputs)))\n",
        42,
        42,
        "bytes are in memory of",
    ),
)
