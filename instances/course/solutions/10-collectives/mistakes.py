"""Likely mistakes of assignment 10: what becomes of a passage of solution.py, the points that are left, from and to, and what is told.

Where the passage is empty, the code is put at the end. A test grades each of them.
"""

MISTAKES = (
    (
        "chunks are sent on before they come",
        "if there.get((sender, chunk), inf) > step:",
        "if (sender, chunk) not in there:",
        45,
        53,
        "before it has come",
    ),
    ("two chunks at once", "        if free[place] > step:\n            return None\n", "", 45, 53, "two chunks are on a link at once"),
    (
        "somebody may lack a chunk",
        "return max(there.values()) if len(there) == npus * npus else None",
        "return max(there.values())",
        35,
        53,
        "None is right",
    ),
    ("when the last one sets out", "return max(there.values()) if", "return max(step for *_, step in sends) if", 30, 53, "sets out"),
    ("in the order of the list", "in sorted(sends, key=lambda send: send[2]):", "in sends:", 48, 48, "sends come in any order"),
    (
        "when the last of all comes",
        "return max(there.values()) if",
        "return max(step + links[place][2] for _, place, step in sends) if",
        45,
        53,
        "comes again",
    ),
    (
        "the last coming counts",
        "min(there.get((receiver, chunk), step + took), step + took)",
        "step + took",
        45,
        53,
        "comes again",
    ),
    (
        "the latest coming counts",
        "min(there.get((receiver, chunk), step + took), step + took)",
        "max(there.get((receiver, chunk), step + took), step + took)",
        45,
        53,
        "comes again",
    ),
    (
        "the first that was sent counts",
        "there[receiver, chunk] = min(there.get((receiver, chunk), step + took), step + took)",
        "there.setdefault((receiver, chunk), step + took)",
        45,
        53,
        "comes again",
    ),
    (
        "links are counted, not steps",
        "away[sender][receiver] = min(away[sender][receiver], took)",
        "away[sender][receiver] = 1",
        30,
        55,
        "links are counted",
    ),
    ("from the first NPU alone", "return max(max(row) for row in away)", "return max(away[0])", 30, 55, "from the first NPU alone"),
    (
        "parts of chunks",
        "while sum(step // took for took in into) < missing:",
        "while sum(step / took for took in into) < missing - 1e-9:",
        20,
        55,
        "parts of chunks",
    ),
    (
        "all links are quick",
        "while sum(step // took for took in into) < missing:",
        "while step * len(into) < missing:",
        20,
        55,
        "their steps are left out",
    ),
    ("the chunks inside", "missing = npus - len(inside)", "missing = len(inside)", 10, 55, "the chunks inside"),
    ("single NPUs alone", "sizes = range(1, npus)", "sizes = (1,)", 20, 55, "looked at"),
    ("all but one alone", "sizes = range(1, npus)", "sizes = (npus - 1,)", 20, 55, "looked at"),
    ("one or two alone", "sizes = range(1, npus)", "sizes = (1, 2)", 45, 55, "looked at"),
    ("half of them at most", "sizes = range(1, npus)", "sizes = range(1, npus // 2 + 1)", 45, 55, "looked at"),
    ("cuts alone", "return max([far(npus, links), *cuts])", "return max(cuts)", 45, 55, "cuts alone"),
    (
        "one way around",
        "",
        """
def ring(order):
    npus = len(order)
    return [[chunk, 2 * ((place + step) % npus), step] for place, chunk in enumerate(order) for step in range(npus - 1)]
""",
        45,
        57,
        "later than they can",
    ),
    ("the first greedy", "if finish(npus, links, sends) == best:", "if sends:", 45, 51, "later than they can"),
)
