"""Likely mistakes of assignment 13: what becomes of a passage of solution.py, the points that are left, from and to, and what is told.

Where the passage is empty, the code is put at the end. A test grades each of them.
"""

MISTAKES = (
    ("prompts take no time", "token = decode + batch * prefill / output", "token = float(decode)", 54.6, 54.6, "take no time"),
    ("one prompt alone", "decode + batch * prefill / output", "decode + prefill / output", 54.6, 54.6, "own prompt"),
    ("milliseconds for seconds", "1000.0 * batch / (output * token)", "batch / (output * token)", 51, 51, ""),
    ("no limits", "if first <= ttft and token <= tpot:", "if True:", 48, 48, "limits are left out"),
    ("strict limits", "first <= ttft and token <= tpot", "first < ttft and token < tpot", 52.8, 52.8, "exactly at its limit"),
    ("copies rounded down", "copies = -(-rate // each)", "copies = max(rate // each, 1)", 48, 48, "rounded down"),
    (
        "most requests for a device",
        "if best is None or copies * size < best[0]:",
        "if best is None or each / size > table[best[1][0]][3] / table[best[1][0]][0]:",
        52.8,
        52.8,
        "its last copy has little to do",
    ),
    (
        "each kind once",
        "",
        """
def best_rates(kinds, devices):
    best = [0] * (devices + 1)
    for size, rate in kinds:
        for count in range(devices, size - 1, -1):
            best[count] = max(best[count], best[count - size] + rate)
    return best
""",
        27,
        51,
        "taken once",
    ),
    (
        "one kind alone",
        "",
        """
def best_rates(kinds, devices):
    return [max(count // size * rate for size, rate in kinds) for count in range(devices + 1)]


def workers(kinds, best, count):
    place = max(range(len(kinds)), key=lambda place: count // kinds[place][0] * kinds[place][1])
    return [count // size if own == place else 0 for own, (size, _) in enumerate(kinds)]
""",
        40.2,
        40.2,
        "one kind of worker alone",
    ),
    (
        "no idle devices",
        "",
        """
def best_rates(kinds, devices):
    best = [0] + [-1] * devices
    for count in range(1, devices + 1):
        best[count] = max([-1, *(best[count - size] + rate for size, rate in kinds if size <= count and best[count - size] >= 0)])
    return [max(one, 0) for one in best]
""",
        51,
        51,
        "are in use",
    ),
    (
        "halves",
        "own = max(range(devices + 1), key=lambda count: min(first[count], second[devices - count]))",
        "own = devices // 2",
        49.2,
        49.2,
        "are halved",
    ),
    (
        "the slower part",
        "return devices * first * second / (first + second)",
        "return devices * min(first, second)",
        54,
        54,
        "has all devices",
    ),
    (
        "half of the devices each",
        "return devices * first * second / (first + second)",
        "return devices * min(first, second) / 2",
        56.4,
        56.4,
        "half of the devices",
    ),
)
