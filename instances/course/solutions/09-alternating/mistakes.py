"""Likely mistakes of assignment 9: what becomes of a passage of solution.py, the points that are left, from and to, and what is told.

Where the passage is empty, the code is put at the end. A test grades each of them.
"""

MISTAKES = (
    (
        "it ends after one round",
        "",
        """
def alternate(times, chip, right=alternate):
    return right(times, chip)[:2]
""",
        20,
        53,
        "ends after one round",
    ),
    (
        "the end alone",
        "",
        """
def alternate(times, chip, right=alternate):
    return right(times, chip)[-1:]
""",
        45,
        53,
        "the end alone",
    ),
    (
        "ties are changed",
        "",
        """
def alternate(times, chip):
    columns = list(zip(*times))
    plan = first(columns[chip])
    if times[plan][chip] is None:
        return []
    way = [[plan, chip]]
    for _ in range(50):
        for step in ("chip", "plan"):
            if step == "chip":
                chip = first(times[plan])
            else:
                plan = first(columns[chip])
            if [plan, chip] != way[-1]:
                way.append([plan, chip])
    return way
""",
        30,
        53,
        "as quick",
    ),
    (
        "the last of the quickest",
        "return min(range(len(line)), key=lambda place: seconds(line[place]))",
        "return min(reversed(range(len(line))), key=lambda place: seconds(line[place]))",
        30,
        55,
        "the last is taken",
    ),
    (
        "two rounds are enough",
        "    way = alternate(times, chip)\n",
        "    way = alternate(times, chip)[:4]\n",
        45,
        55,
        "cut after some rounds",
    ),
    ("three rounds are enough", "    while changed:\n", "    for _ in range(3):\n", 30, 45, "cut after some rounds"),
    ("ten rounds are enough", "    while changed:\n", "    for _ in range(10):\n", 30, 45, "cut after some rounds"),
    (
        "a way that cannot begin",
        "    if times[plan][chip] is None:\n        return []\n",
        "",
        0,
        50,
        "",
    ),
    (
        "only where no other is as quick",
        "best(times) < time == min",
        "row.count(time) == columns[chip].count(time) == 1 and best(times) < time == min",
        45,
        53,
        "as quick: nobody leaves it",
    ),
    ("a broken limit takes no time", "return inf if time is None else time", "return 0 if time is None else time", 0, 20, ""),
    ("the best is among those where it sticks", "best(times) < time ==", "time ==", 45, 53, "the best design is among them"),
    ("the quickest chips of plans", " == min(map(seconds, columns[chip]))", "", 45, 53, "the quickest chips of plans"),
    ("the quickest plans of chips", " == min(map(seconds, row))", "", 45, 53, "the quickest plans of chips"),
    ("the chips that succeed", "if end(times, chip) > best(times)]", "if end(times, chip) == best(times)]", 45, 55, "it finds the best"),
    (
        "chips from which it cannot begin",
        "if end(times, chip) > best(times)]",
        "if inf > end(times, chip) > best(times)]",
        45,
        55,
        "no plan fits",
    ),
    (
        "the first step alone",
        "if end(times, chip) > best(times)]",
        "if min(seconds(row[chip]) for row in times) > best(times)]",
        45,
        55,
        "the best plan of a chip",
    ),
    (
        "the loss as a share",
        "return end(times, chip) / best(times)",
        "return end(times, chip) / best(times) - 1",
        45,
        55,
        "as a share of the best",
    ),
    ("the ratio turned round", "return end(times, chip) / best(times)", "return best(times) / end(times, chip)", 45, 55, "turned round"),
    ("a trap that is too shallow", "else ratio if p and c", "else 2 if p and c", 45, 55, "not so far above"),
    ("a trap without a bottom", "else ratio if p and c else 1000", "else ratio", 45, 51, "it should"),
    (
        "neighbours alone",
        "pairs = list(combinations(range(len(times[0])), 2))",
        "pairs = [(c, c + 1) for c in range(len(times[0]) - 1)]",
        45,
        55,
        "",
    ),
    (
        "the first plan alone",
        "for one, other in combinations(times, 2) for c, d in pairs)",
        "for one in times[:1] for other in times[1:] for c, d in pairs)",
        45,
        55,
        "",
    ),
    ("the sign is kept", "return max(abs(one[c]", "return max((one[c]", 45, 55, ""),
)
