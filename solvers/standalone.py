"""Certificates checked by nothing but Python and exact numbers: `python standalone.py CERTIFICATE.json[.gz] [PROBLEM.json[.gz]]`.

It says `proved: ...` (exit code 0), `covered: ...` (2) or `refused: ...` (1). A certificate of strategies holds a problem in the form of
the contest on intra-operator parallelism (ASPLOS and EuroSys 2025; costs of 10^18 and more are forbidden), and steps that leave nothing:

    {"kind": "sharding", "format": 1, "answer": [strategy of each node], "bound": number, "steps": [...], "problem":
     {"nodes": {"intervals": [[start, end], ...], "costs": [[...], ...], "usages": [[...], ...]},
      "edges": {"nodes": [[first, second], ...], "costs": [[row by row], ...]}, "usage_limit": number, or absent}}

With null as answer and bound the claim is that there is no choice. A second file is the problem as its author wrote it, to be the same.
Steps are carried out one by one on a copy; nodes, strategies and times keep their numbers. The function of its name says why one is sound.

    ["needless", v, s, r]        strategy s of node v goes: nothing allows it (and there need be no r), or r is no worse
    ["apart", u, v]              the edge goes: its costs come apart
    ["into", v, u], ["out", v]   node v goes: u decides it, or its neighbours pay for its best answer
    ["moments"]                  only those times count at which memory may be too much
    ["dual", scale, [[time, price], ...], [[u, v, [to u, ...], [to v, ...]], ...], cost]   in 1 / scale; what reaches bound and cost goes
    ["beyond"]                   the bound is more than any choice costs, where the claim is that there is none
    ["branch", v, [s, ...], [steps], [steps]]   first only these strategies of v are left, then only the others

A certificate of joint designs has boxes whose cuts are checked, and prices that are not: it is never called proved. `--price N COMMAND`
holds N designs to `COMMAND evaluate`. Options: VALUE or "VALUE; KEY=VALUE". A tree: the least value in its box, null if none is, or a cut:

    {"kind": "codesign", "format": 1, "question": YAML, "settings": [KEY=VALUE, ...], "choices": [[name, [option, ...]], ...],
     "answer": [place of each option, from 0], "figure": name, "bound": number, "tree": [choice, [last place, tree], ...]}
"""

import gzip
import json
import random
import subprocess
import sys
import tempfile
from bisect import bisect_left
from fractions import Fraction
from itertools import accumulate
from math import prod
from pathlib import Path
from typing import Any

FORBIDDEN_FROM, MOST, NEVER = 10**18, 10**8, float("inf")  # costs; bytes of a file; what is forbidden costs, added and compared only
Json = Any


class ClosedError(Exception):
    """Nothing is left that is allowed and costs less than the bound."""


def need(holds: bool, sentence: str) -> None:
    if not holds:
        raise ValueError(sentence)


def read(path: str) -> Json:
    """What a file says in texts and exact numbers."""
    need(Path(path).is_file(), f"{path} is no file")
    with Path(path).open("rb") as file, gzip.GzipFile(fileobj=file) as packed:
        data = (packed if file.peek(2)[:2] == b"\x1f\x8b" else file).read(MOST + 1)
    need(len(data) <= MOST, f"{path} is larger than {MOST} bytes")
    return json.loads(data, parse_float=lambda text: Fraction(float(text)), parse_constant=Fraction)


def integers(figures: Json) -> list[int]:
    need(type(figures) is list and all(type(figure) is int for figure in figures), "what should be a list of whole numbers is none")
    return list(figures)


def require_valid_form(problem: Json) -> None:
    """Every row has its length, every edge its nodes, and no memory is below 0."""
    (spans, costs, usages), edges = (problem["nodes"][key] for key in ("intervals", "costs", "usages")), problem["edges"]
    need(len(costs) == len(usages) == len(spans) and len(edges["nodes"]) == len(edges["costs"]), "the problem's lists differ in length")
    for v, row in enumerate(costs):
        need(len(integers(row)) == len(integers(usages[v])) > 0 and len(integers(spans[v])) == 2, f"the rows of node {v} differ in length")
        need(min(usages[v]) >= 0, f"node {v} takes less than no memory")
    for e, pair in enumerate(edges["nodes"]):
        need(len(integers(pair)) == 2 and all(0 <= v < len(costs) for v in pair), f"edge {e} has a node that there is not")
        need(len(integers(edges["costs"][e])) == len(costs[pair[0]]) * len(costs[pair[1]]), f"edge {e} has no cost for every pair")
    need((limit := problem.get("usage_limit")) is None or (type(limit) is int and limit >= 0), "the limit is no whole number from 0 on")


def price(problem: Json, answer: Json) -> tuple[int, int]:
    """What the answer costs and takes at its peak, straight from the problem."""
    nodes, edges, limit = problem["nodes"], problem["edges"], problem.get("usage_limit")
    need(len(integers(answer)) == len(nodes["costs"]), "the answer has not one strategy for each node")
    need(all(0 <= s < len(row) for s, row in zip(answer, nodes["costs"], strict=True)), "the answer takes a strategy that there is not")
    parts = [row[s] for s, row in zip(answer, nodes["costs"], strict=True)]
    parts += [row[answer[u] * len(nodes["costs"][v]) + answer[v]] for (u, v), row in zip(edges["nodes"], edges["costs"], strict=True)]
    need(all(part < FORBIDDEN_FROM for part in parts), "the answer takes what is forbidden")
    alive = [(start, end, row[s]) for s, row, (start, end) in zip(answer, nodes["usages"], nodes["intervals"], strict=True) if start < end]
    peak = max(in_use(sorted({start for start, _, _ in alive}), alive), default=0)
    need(limit is None or peak <= limit, f"the answer takes {peak} bytes at its peak, the limit is {limit}")
    return sum(parts), peak


def in_use(times: list[int], usages: list[Any]) -> list[int]:
    """The bytes in use at each of these rising times, of all that is held as (start, end, bytes), from its start to before its end."""
    change = [0] * (len(times) + 1)
    for start, end, taken in usages:
        change[bisect_left(times, start)] += taken
        change[bisect_left(times, end)] -= taken
    return list(accumulate(change))[:-1]


class Core:
    """What is left: the strategies `live[v]` of node v, their costs `cost[v][s]`, those of pairs `near[v][w][s][t]`, held both ways.

    A member (start, end, usages) of v takes usages[s] bytes, from its start to before its end, where v takes s; those in `fixed` are in use
    whatever is chosen. The limit is held at `times`. Besides all this a choice costs `constant`; it is cheap if it costs less than `bound`.
    """

    def __init__(self, problem: Json, bound: int | None) -> None:
        nodes, edges = problem["nodes"], problem["edges"]
        costs, pairs = ([[NEVER if cost >= FORBIDDEN_FROM else cost for cost in row] for row in part["costs"]] for part in (nodes, edges))
        self.none, self.constant, self.limit = bound is None, 0, problem.get("usage_limit")
        self.live = {v: list(range(len(row))) for v, row in enumerate(costs)}
        self.cost: dict[int, list[Any]] = dict(enumerate(costs))
        self.near: dict[int, dict[int, Json]] = {v: {} for v in self.live}
        for (u, v), flat in zip(edges["nodes"], pairs, strict=True):
            rows = [flat[at : at + len(costs[v])] for at in range(0, len(flat), len(costs[v]))]
            if u == v:  # both ends choose the same
                self.cost[v] = [cost + rows[s][s] for s, cost in enumerate(self.cost[v])]
            else:
                self.add(u, v, rows)
        spans = enumerate(nodes["intervals"])
        self.members = {v: [(*span, nodes["usages"][v])] if span[0] < span[1] and self.limit is not None else [] for v, span in spans}
        self.fixed: list[tuple[int, int, int]] = []
        self.times = sorted({start for own in self.members.values() for start, _, _ in own})  # memory rises nowhere else
        self.bound = bound or 0
        if self.none:
            self.beyond()

    def add(self, u: int, v: int, rows: Json) -> None:
        """Adds costs to the pairs of two nodes."""
        if v in self.near[u]:
            rows = [[first + second for first, second in zip(*both, strict=True)] for both in zip(self.near[u][v], rows, strict=True)]
        self.near[u][v], self.near[v][u] = rows, [list(column) for column in zip(*rows, strict=True)]

    def remove(self, v: int) -> None:
        for w in self.near.pop(v):
            del self.near[w][v]
        del self.live[v], self.cost[v], self.members[v]

    def drop(self, v: int, s: int) -> None:
        self.live[v].remove(s)
        if not self.live[v]:  # and every choice has a strategy of v
            raise ClosedError

    def hold(self, v: int, *strategies: int) -> None:
        need(v in self.live and all(s in self.live[v] for s in strategies), f"node {v} is gone, or one of its strategies {strategies}")

    def alone(self, v: int, s: int) -> bool:
        """Whether a choice with s of v pays a forbidden cost, whatever else it takes: that of s, or one of a pair with any neighbour."""
        return self.cost[v][s] == NEVER or any(all(rows[s][t] == NEVER for t in self.live[w]) for w, rows in self.near[v].items())

    def needless(self, v: int, s: int, r: Json = None) -> None:
        """No allowed choice has a strategy that is alone. A choice with another s may take r instead: it stays allowed, each edge adds at
        most the greatest difference over what s allows there, no member takes more. So if there is a cheap choice, one is without s."""
        self.hold(v, s)
        if not self.alone(v, s):
            need(r != s and r in self.live[v], f"strategy {s} of node {v} may be chosen")
            more = self.cost[v][r] - self.cost[v][s]
            for w, rows in self.near[v].items():
                more += max(rows[r][t] - rows[s][t] for t in self.live[w] if rows[s][t] < NEVER)
            need(more <= 0 and all(use[r] <= use[s] for _, _, use in self.members[v]), f"strategy {r} of node {v} is worse than {s}")
        self.drop(v, s)

    def apart(self, u: int, v: int) -> None:
        """Where C(s, t) = f(s) + h(t) for all s and t, every choice pays the same if u pays f and v pays h."""
        rows, first = self.near[u][v], self.live[u][0]
        need(all(rows[s][t] < NEVER for s in self.live[u] for t in self.live[v]), f"nodes {u} and {v} have a forbidden pair")
        to_u = {s: min(rows[s][t] for t in self.live[v]) for s in self.live[u]}
        to_v = {t: rows[first][t] - to_u[first] for t in self.live[v]}
        same = all(rows[s][t] == to_u[s] + to_v[t] for s in self.live[u] for t in self.live[v])
        need(same, f"the costs of nodes {u} and {v} do not come apart")
        del self.near[u][v], self.near[v][u]
        for node, more in ((u, to_u), (v, to_v)):
            for s, cost in more.items():
                self.cost[node][s] += cost

    def into(self, v: int, u: int) -> None:
        """Each strategy t of u allows phi(t) of v alone: an allowed choice is the same without v where u at t pays what v pays at phi(t),
        along its edges too, and takes its memory, each member as long as before."""
        rows, phi = self.near[u][v], [self.live[v][0]] * len(self.cost[u])  # that of strategies that are gone is never looked at
        for t in self.live[u]:
            left = [s for s in self.live[v] if rows[t][s] < NEVER]
            need(len(left) == 1, f"strategy {t} of node {u} allows {len(left)} of node {v}")
            phi[t] = left[0]
            self.cost[u][t] += self.cost[v][phi[t]] + rows[t][phi[t]]
        for w, others in self.near[v].items():
            if w != u:
                self.add(u, w, [list(others[s]) for s in phi])
        self.members[u] = self.members[u] + [(start, end, [usages[s] for s in phi]) for start, end, usages in self.members[v]]
        self.remove(v)

    def out(self, v: int) -> None:
        """Whatever its neighbours take, v may take what is cheapest then, since no memory depends on it: they pay for just that."""
        self.hold(v)
        near = list(self.near[v].items())
        need(not self.members[v] and len(near) <= 2, f"node {v} has memory or more than two neighbours")

        def least(*taken: int) -> Json:
            return min(self.cost[v][s] + sum(rows[s][t] for (_, rows), t in zip(near, taken, strict=True)) for s in self.live[v])

        if not near:
            self.constant += least()  # forbidden where v has nothing to take: no choice is cheap then
        u, w = (*self.near[v], v, v)[:2]
        if len(near) == 1:
            self.cost[u] = [cost + least(t) for t, cost in enumerate(self.cost[u])]
        elif near:
            self.add(u, w, [[least(t, r) for r in range(len(self.cost[w]))] for t in range(len(self.cost[u]))])
        self.remove(v)

    def moments(self) -> None:
        """Only those times count at which what may be in use is above the limit: it holds at all others. Members of a node that are alive
        at the same of these are one, and those that take the same whatever is chosen are fixed."""
        members = [(start, end, max(usages[s] for s in self.live[v])) for v in self.live for start, end, usages in self.members[v]]
        self.times = [time for time, taken in zip(self.times, in_use(self.times, members + self.fixed), strict=True) if taken > self.limit]
        for v, own in self.members.items():
            found: dict[tuple[int, int], Json] = {}
            for start, end, usages in own:
                span = bisect_left(self.times, start), bisect_left(self.times, end)
                _, _, before = found.get(span, (0, 0, [0] * len(usages)))
                found[span] = start, end, [first + second for first, second in zip(before, usages, strict=True)]
            merged = [member for (first, last), member in found.items() if first < last]
            fixed = [member for member in merged if len({member[2][s] for s in self.live[v]}) == 1]
            self.members[v] = [member for member in merged if member not in fixed]
            self.fixed += [(start, end, usages[self.live[v][0]]) for start, end, usages in fixed]

    def beyond(self) -> None:
        """No allowed choice costs as much as all nodes and edges at the most that they allow, and 1: a choice that is not cheap is none."""
        need(self.none, "the bound may not be changed")
        parts = [[self.cost[v][s] for s in own] for v, own in self.live.items()]
        parts += [[rows[s][t] for s in self.live[u] for t in self.live[v]] for u in self.near for v, rows in self.near[u].items() if u < v]
        self.bound = self.constant + 1 + sum(max((cost for cost in part if cost < NEVER), default=0) for part in parts)

    def dual(self, scale: int, prices: Json, messages: Json, below: int = 0) -> None:
        """For any prices of memory from 0 on, and any messages that strategies pay and their edges get, no choice costs less than the least
        of each node, with messages and paid memory, and of each edge, without messages, less what the limit is worth: messages cancel, and
        memory in use is at most the limit. A choice pays besides what its strategies and pairs are above these leasts."""
        order, each = integers([time for time, _ in prices]), integers([price for _, price in prices])
        need(type(scale) is int and scale >= 1 and min(each, default=0) >= 0, "a scale is below 1, or a price below 0")
        need(order == sorted(set(order)) and set(order) <= set(self.times), "a price is at a time that does not count")
        paid = [0, *accumulate(each)]  # for a byte up to each of these times
        byte = {
            (a, b): paid[bisect_left(order, b)] - paid[bisect_left(order, a)]
            for own in (*self.members.values(), self.fixed)
            for a, b, _ in own
        }
        nodes = {v: {s: scale * self.cost[v][s] for s in own} for v, own in self.live.items()}
        for v, start, end, usages in ((v, *member) for v, own in self.members.items() for member in own):
            for s in self.live[v]:
                nodes[v][s] += byte[start, end] * usages[s]
        gaps: dict[tuple[int, int], Json] = {}
        silent = ([u, v, [0] * len(self.live[u]), [0] * len(self.live[v])] for u in self.near for v in self.near[u] if u < v)
        for u, v, to_u, to_v in [*messages, *silent]:
            if (u, v) in gaps or (v, u) in gaps:  # the first messages of an edge count
                continue
            rows, twos = self.near[u][v], list(zip(self.live[v], to_v, strict=True))
            gaps[u, v] = [[scale * rows[s][t] - message - two for t, two in twos] for s, message in zip(self.live[u], to_u, strict=True)]
            for node, own in ((u, integers(to_u)), (v, integers(to_v))):
                for s, message in zip(self.live[node], own, strict=True):
                    nodes[node][s] += message
        leasts, edges = {v: min(own.values()) for v, own in nodes.items()}, {pair: min(map(min, table)) for pair, table in gaps.items()}
        total = sum(byte[start, end] * taken for start, end, taken in self.fixed) - paid[-1] * (self.limit or 0)
        slack = scale * (self.bound - self.constant) - total - sum(leasts.values()) - sum(edges.values())
        if slack < scale:  # costs are whole: what is above bound - 1 is the bound at least
            raise ClosedError
        slack += scale * max(*integers([below]), self.bound) - scale * self.bound
        above = {v: {s: cost - leasts[v] for s, cost in own.items()} for v, own in nodes.items()}
        self.fix(above, {pair: [[cost - edges[pair] for cost in row] for row in table] for pair, table in gaps.items()}, slack)

    def fix(self, above: dict[int, dict[int, Json]], gaps: dict[tuple[int, int], Json], slack: int) -> None:
        """A choice with s of v pays above the leasts what s does, and at each edge at least what the cheapest pair with s does; one with a
        pair pays what the pair does and what both its ends do elsewhere. Where that takes up the slack, no cheap choice has it."""
        sides = {(u, v): (list(map(min, table)), list(map(min, zip(*table, strict=True)))) for (u, v), table in gaps.items()}
        for pair, both in sides.items():
            for node, own in zip(pair, both, strict=True):
                for s, more in zip(self.live[node], own, strict=True):
                    above[node][s] += more
        for (u, v), table in gaps.items():
            pairs = (zip(self.live[w], own, strict=True) for w, own in zip((u, v), sides[u, v], strict=True))
            ones, twos = ([above[w][s] - own if own < NEVER else NEVER for s, own in pair] for w, pair in zip((u, v), pairs, strict=True))
            for s, first, row in zip(self.live[u], ones, table, strict=True):
                for t, second, cost in zip(self.live[v], twos, row, strict=True):
                    if first + second + cost >= slack:
                        self.near[u][v][s][t] = self.near[v][u][t][s] = NEVER
        for v, total in above.items():
            for s, more in total.items():
                if more >= slack:
                    self.drop(v, s)

    def branch(self, v: int, first: Json, *parts: Json) -> None:
        """Every choice takes one of these strategies of v, or one of the others."""
        self.hold(v, *first)
        for part, steps in zip((sorted(set(first)), [s for s in self.live[v] if s not in first]), parts, strict=True):
            core = object.__new__(Core)
            core.__dict__.update(self.__dict__, fixed=self.fixed[:], members={w: own[:] for w, own in self.members.items()})
            core.live = {w: own[:] for w, own in self.live.items()} | {v: part}
            core.cost = {w: own[:] for w, own in self.cost.items()}
            core.near = {w: {x: [row[:] for row in rows] for x, rows in own.items()} for w, own in self.near.items()}
            if part:
                close(core, steps)
        raise ClosedError


STEPS = {name: getattr(Core, name) for name in ("needless", "apart", "into", "out", "moments", "dual", "beyond", "branch")}


def close(core: Core, steps: Json) -> None:
    """Carries the steps out until nothing cheap is left; what follows is not read."""
    try:
        for name, *given in steps:
            need(name in STEPS, "there is no such step")
            STEPS[name](core, *given)
    except ClosedError:
        return
    raise ValueError("the steps leave choices that may cost less than the bound")


def check(certificate: Json, *problems: Json) -> str:
    """The sentence that is proved."""
    own, answer, bound = certificate["problem"], certificate["answer"], certificate["bound"]
    require_valid_form(own)
    for theirs in (problem.get("problem", problem) for problem in problems):
        need(vars(Core(own, 1)) == vars(Core(theirs, 1)), "the certificate is about another problem")
    need((answer is None) == (bound is None) and (bound is None or type(bound) is int), "an answer and a whole bound belong together")
    if answer is None:
        close(Core(own, None), certificate["steps"])
        return "no choice is allowed" + (" and keeps the limit" if own.get("usage_limit") is not None else "")
    cost, peak = price(own, answer)
    close(Core(own, bound), certificate["steps"])
    need(bound <= cost, f"the answer costs {cost}, below the bound {bound}")
    return f"no choice costs less than {bound}; the answer costs {cost} (memory at its peak {peak})"


def boxes(tree: Json, box: list[Any], bound: Fraction) -> list[tuple[list[Any], Json]]:
    """The boxes that are not cut, each with its least value; every cut parts its box without rest and without overlap."""
    if type(tree) is not list:
        need(tree is None or tree >= bound, "a box may hold a design below the bound")
        return [(box, tree)]
    (choice, *parts), found = tree, []
    (first, end), before = box[choice], box[: integers([choice])[0]]
    need(choice >= 0 and parts[-1][0] == end, "a cut leaves designs out")
    for last, part in parts:
        need(first <= integers([last])[0] <= end, "the parts of a cut overlap")
        found += boxes(part, [*before, (first, last), *box[choice + 1 :]], bound)
        first = last + 1
    return found


def evaluated(certificate: Json, places: list[int], command: list[str]) -> Json:
    """What the command says that a design is worth; None where it is no plan, cannot be built, or breaks a limit."""
    named = "; ".join(f"{name}={options[index]}" for (name, options), index in zip(certificate["choices"], places, strict=True))
    settings = [f"--set={setting}" for setting in [*certificate["settings"], *named.split("; ")]]
    with tempfile.TemporaryDirectory() as folder:
        (file := Path(folder) / "question.yaml").write_text(certificate["question"], encoding="utf-8")
        done = subprocess.run([*command, "evaluate", str(file), "--json", *settings], capture_output=True, text=True, check=False)
    need(done.returncode in (0, 20) or "choices: no " in done.stderr, f"{command[0]} ended with {done.returncode}")
    design = json.loads(done.stdout)["evaluation"] if done.returncode == 0 else {"feasible": False}
    return Fraction(design[certificate["figure"]]) if design["feasible"] else None


def cover(certificate: Json, draws: list[int], command: list[str]) -> str:
    """What is known of joint designs without a price of one's own."""
    choices, bound, answer, prices_checked = certificate["choices"], certificate["bound"], integers(certificate["answer"]), 0
    every = boxes(certificate["tree"], [(0, len(options) - 1) for _, options in choices], bound)
    points = [[random.randrange(len(options)) for _, options in choices] for _ in range(sum(draws))]
    for places in [answer, *points]:
        inside = ((box, least) for box, least in every if all(a <= index <= b for index, (a, b) in zip(places, box, strict=True)))
        (box, least), value = next(inside), evaluated(certificate, places, command) if draws else NEVER
        need(value is None or (least is not None and value >= least), f"design {places} is below what its box may hold")
        holds = (value is not None or places != answer) and (value in (least, NEVER) or any(first < last for first, last in box))
        need(holds, f"design {places} is not worth what is said")
        prices_checked += value is not None
    prices = f"of the answer and {len(points)} drawn {prices_checked} have a price, as is said" if draws else "prices were not checked"
    parts = f"{prod(len(some) for _, some in choices)} designs of its own lists lie in {len(every)} boxes"
    return f"{parts}, none said to be below {float(bound)}; that these are all of the question's is not seen; {prices}"


def main(arguments: list[str]) -> int:
    try:
        at = [*arguments, "--price"].index("--price")
        need(at > 0, "no file is named (python standalone.py CERTIFICATE.json[.gz] [PROBLEM.json[.gz]] [--price N COMMAND])")
        certificate, *problems = map(read, arguments[:at])
        joint = certificate["kind"] == "codesign"
        known = certificate["format"] == 1 and (joint or certificate["kind"] == "sharding") and len(problems) <= (not joint)
        need(known, "its kind or its format is not known here, or there are too many files")
        if joint:
            message = f"covered: {cover(certificate, [int(number) for number in arguments[at + 1 : at + 2]], arguments[at + 2 :])}"
        else:
            message = f"proved: {check(certificate, *problems)}"
    except Exception as error:  # noqa: BLE001 - whatever goes wrong, nothing is proved
        broken = f"this is no certificate ({type(error).__name__}: {str(error)[:80]})"
        message = f"refused: {error if isinstance(error, (ValueError, OSError)) else broken}"
    sys.stdout.write("".join(letter if letter.isprintable() else "?" for letter in message) + "\n")
    return {"p": 0, "c": 2}.get(message[0], 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
