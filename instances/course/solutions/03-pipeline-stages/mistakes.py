"""Likely mistakes of assignment 3: what becomes of a passage of solution.py, the points that are left, from and to, and what is told.

Where the passage is empty, the code is put at the end. A test grades each of them.
"""

MISTAKES = (
    (
        "messages are forgotten",
        "(messages[start - 1] if start else 0) + messages[end - 1] * (end < len(times))",
        "0",
        25,
        50,
        "messages are left out",
    ),
    (
        "a message is paid where it is taken in",
        " + messages[end - 1] * (end < len(times))",
        "",
        25,
        50,
        "a message is paid by one of its two stages",
    ),
    ("a message is paid where it is handed on", " + (messages[start - 1] if start else 0)", "", 25, 50, "us"),
    (
        "equal numbers of layers",
        "",
        """
def best_stages(times, messages, stages):
    return sorted({place * len(times) // stages for place in range(stages)})
""",
        35,
        40,
        "equal numbers",
    ),
    (
        "as many stages as allowed",
        "",
        """
def best_stages(times, messages, stages, right=best_stages):
    cost, count = costs(times, messages), len(times)
    best = {(end, 1): (cost(0, end), [0]) for end in range(1, count + 1)}
    for used in range(2, stages + 1):
        for end in range(used, count + 1):
            best[end, used] = min(
                (max(best[start, used - 1][0], cost(start, end)), best[start, used - 1][1] + [start]) for start in range(used - 1, end)
            )
    return best[count, stages][1]
""",
        35,
        50,
        "where fewer are quicker",
    ),
    (
        "the bound is an equal share alone",
        "max(*times, -(-sum(times) // stages))",
        "-(-sum(times) // stages)",
        50,
        57,
        "the longest layer is left out",
    ),
    ("the bound is rounded down", "-(-sum(times) // stages)", "sum(times) // stages", 50, 57, "not rounded up"),
    (
        "the bound is the longest layer alone",
        "max(*times, -(-sum(times) // stages))",
        "max(times)",
        50,
        57,
        "an equal share of all layers is left out",
    ),
    ("the model lets stages go back", 'rows.append({"terms": later, "at_least": 0})', "pass", 35, 40, ""),
    ("the model lets a layer be on two stages", '"equals": 1', '"at_least": 1', 35, 40, ""),
    (
        "the model forgets to take in",
        '            rows.append({"terms": {into[i + 1, s]: 1, on[i + 1, s]: -1, on[i, s]: 1}, "at_least": 0})\n',
        "",
        35,
        50,
        "objective",
    ),
    (
        "the model minimises the sum of stages",
        '"minimise": {"busiest": 1}',
        '"minimise": {name: 1 for name in (*out.values(), *into.values())}',
        35,
        40,
        "",
    ),
    ("a stage of exactly the limit is too long", "cost(start, end) <= limit", "cost(start, end) < limit", 45, 55, "exactly the limit"),
    (
        "stages are filled one after the other",
        "",
        """
def fewest_stages(times, messages, limit):
    cost, starts = costs(times, messages), [0]
    while True:
        ends = [end for end in range(starts[-1] + 1, len(times) + 1) if cost(starts[-1], end) <= limit]
        if not ends or ends[-1] == len(times):
            return starts
        starts.append(ends[-1])
""",
        45,
        55,
        "",
    ),
    (
        "filled by a limit that is halved",
        "",
        """
def best_stages(times, messages, stages):
    cost, count = costs(times, messages), len(times)

    def filled(limit):
        starts = [0]
        while True:
            ends = [end for end in range(starts[-1] + 1, count + 1) if cost(starts[-1], end) <= limit]
            if not ends:
                return None
            if ends[-1] == count:
                return starts
            starts.append(ends[-1])

    low, high = 0, sum(times) + 2 * sum(messages)
    while low < high:
        middle = (low + high) // 2
        starts = filled(middle)
        low, high = (low, middle) if starts and len(starts) <= stages else (middle + 1, high)
    return filled(low)
""",
        45,
        50,
        "",
    ),
    ("the bound is rounded to the nearest", "-(-sum(times) // stages)", "round(sum(times) / stages)", 50, 57, "not rounded up"),
)
