"""Certificates checked by nothing but Python and whole numbers: `python standalone.py CERTIFICATE.json[.gz] [PROBLEM.json[.gz]]`.

One line says `proved: ...` (exit code 0) or `refused: ...` (1). A certificate of strategies holds a problem in the form of the contest on
intra-operator parallelism (ASPLOS and EuroSys 2025; costs of 10^18 and more are forbidden), and steps that leave nothing below the bound:

    {"kind": "sharding", "format": 1, "answer": [strategy of each node], "bound": number, "steps": [...], "problem":
     {"nodes": {"intervals": [[start, end], ...], "costs": [[...], ...], "usages": [[...], ...]},
      "edges": {"nodes": [[first, second], ...], "costs": [[row by row], ...]}, "usage_limit": number, or absent}}

Without answer and bound (null) the claim is that there is no choice. A second file is the problem as its author wrote it: the certificate
must be about that. Steps are carried out on a copy of the problem, one by one; nodes, strategies and times keep their first numbers. Why
a step loses no choice cheaper than the bound is said at the function of its name; how it was found does not matter.

    ["never", v, s]  ["worse", v, s, r]    strategy s of node v goes: nothing allows it, or r is no worse
    ["apart", u, v]                        the edge goes: its costs come apart
    ["into", v, u]  ["out", v]             node v goes: u decides it, or its neighbours pay for its best answer
    ["moments"]                            only those times count at which memory may be too much
    ["dual", scale, [[time, price], ...], [[u, v, [to u, ...], [to v, ...]], ...]]    a bound in units of 1 / scale: what reaches it goes
    ["beyond"]                             the bound is more than any choice costs, where the claim is that there is none
    ["branch", v, [s, ...], [steps], [steps]]   first only these strategies of v are left, then only the others
"""

import gzip
import json
import sys
from bisect import bisect_left
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

FORBIDDEN_FROM = 10**18
NEVER = float("inf")  # what is forbidden costs this: the only number here that is not whole, compared and added but never taken away
Json = Any
Rows = list[list[Any]]


class RefusedError(Exception):
    """The certificate proves nothing, for the reason said."""


class ClosedError(Exception):
    """Nothing is left that is allowed and costs less than the bound."""


def need(holds: bool, sentence: str) -> None:
    if not holds:
        raise RefusedError(sentence)


def read(path: str) -> Json:
    """What a file says in texts and whole numbers; any other number is refused."""

    def refuse(text: str) -> None:
        raise RefusedError(f"{text[:40]} is no whole number")

    data = Path(path).read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data, parse_float=refuse, parse_constant=refuse)


def whole(figures: Json) -> list[int]:
    need(type(figures) is list and all(type(figure) is int for figure in figures), "what should be a list of whole numbers is none")
    return list(figures)


def hold_to_form(problem: Json) -> None:
    """Every row has its length, every edge its nodes, and no memory is below 0."""
    (spans, costs, usages), edges = (problem["nodes"][key] for key in ("intervals", "costs", "usages")), problem["edges"]
    need(len(costs) == len(usages) == len(spans) and len(edges["nodes"]) == len(edges["costs"]), "the problem's lists differ in length")
    for v, row in enumerate(costs):
        need(len(whole(row)) == len(whole(usages[v])) > 0 and len(whole(spans[v])) == 2, f"the rows of node {v} differ in length")
        need(min(usages[v]) >= 0, f"node {v} takes less than no memory")
    for e, pair in enumerate(edges["nodes"]):
        need(len(whole(pair)) == 2 and all(0 <= v < len(costs) for v in pair), f"edge {e} has a node that there is not")
        need(len(whole(edges["costs"][e])) == len(costs[pair[0]]) * len(costs[pair[1]]), f"edge {e} has no cost for every pair")
    limit = problem.get("usage_limit")
    need(limit is None or (type(limit) is int and limit >= 0), "the limit is no whole number from 0 on")


def price(problem: Json, answer: Json) -> tuple[int, int]:
    """What the answer costs and takes at its peak, straight from the problem."""
    nodes, edges, limit = problem["nodes"], problem["edges"], problem.get("usage_limit")
    need(len(whole(answer)) == len(nodes["costs"]), "the answer has not one strategy for each node")
    need(all(0 <= s < len(row) for s, row in zip(answer, nodes["costs"], strict=True)), "the answer takes a strategy that there is not")
    parts = [row[s] for s, row in zip(answer, nodes["costs"], strict=True)]
    for (u, v), costs in zip(edges["nodes"], edges["costs"], strict=True):
        parts.append(costs[answer[u] * len(nodes["costs"][v]) + answer[v]])
    need(all(part < FORBIDDEN_FROM for part in parts), "the answer takes what is forbidden")
    alive = [(start, end, row[s]) for s, row, (start, end) in zip(answer, nodes["usages"], nodes["intervals"], strict=True) if start < end]
    peak = max(in_use(sorted({start for start, _, _ in alive}), alive), default=0)
    need(limit is None or peak <= limit, f"the answer takes {peak} bytes at its peak, the limit is {limit}")
    return sum(parts), peak


def in_use(times: list[int], held: list[Any]) -> list[int]:
    """The bytes in use at each of these rising times, of all that is held as (start, end, bytes), from its start to before its end."""
    change = [0] * (len(times) + 1)
    for start, end, taken in held:
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
        costs, pairs = ([[NEVER if one >= FORBIDDEN_FROM else one for one in row] for row in part["costs"]] for part in (nodes, edges))
        self.none, self.constant, self.limit = bound is None, 0, problem.get("usage_limit")
        self.live = {v: list(range(len(row))) for v, row in enumerate(costs)}
        self.cost: dict[int, list[Any]] = dict(enumerate(costs))
        self.near: dict[int, dict[int, Rows]] = {v: {} for v in self.live}
        for (u, v), flat in zip(edges["nodes"], pairs, strict=True):
            rows = [flat[at : at + len(costs[v])] for at in range(0, len(flat), len(costs[v]))]
            if u == v:  # both ends choose the same
                self.cost[v] = [cost + rows[s][s] for s, cost in enumerate(self.cost[v])]
            else:
                self.add(u, v, rows)
        spans = enumerate(nodes["intervals"] if self.limit is not None else [])
        held = {v: [(start, end, nodes["usages"][v])] for v, (start, end) in spans if start < end}
        self.members: dict[int, list[Any]] = {v: held.get(v, []) for v in self.live}
        self.fixed: list[tuple[int, int, int]] = []
        self.times = sorted({time for own in held.values() for time in own[0][:2]})
        self.bound = 0 if bound is None else bound
        if self.none:
            self.beyond()

    def add(self, u: int, v: int, rows: Rows) -> None:
        """Adds costs to the pairs of two nodes."""
        if v in self.near[u]:
            rows = [[one + other for one, other in zip(*both, strict=True)] for both in zip(self.near[u][v], rows, strict=True)]
        self.near[u][v], self.near[v][u] = rows, [list(column) for column in zip(*rows, strict=True)]

    def remove(self, v: int) -> None:
        for w in self.near.pop(v):
            del self.near[w][v]
        del self.live[v], self.cost[v], self.members[v]

    def drop(self, v: int, s: int) -> None:
        self.live[v].remove(s)
        if not self.live[v]:
            raise ClosedError  # every choice has a strategy of v

    def hold(self, v: int, *strategies: int) -> None:
        need(v in self.live and all(s in self.live[v] for s in strategies), f"node {v} is gone, or one of its strategies {strategies}")

    def alone(self, v: int, s: int) -> bool:
        """Whether a choice with s of v pays a forbidden cost, whatever else it takes: that of s, or one of a pair with any neighbour."""
        return self.cost[v][s] == NEVER or any(all(rows[s][t] == NEVER for t in self.live[w]) for w, rows in self.near[v].items())

    def never(self, v: int, s: int) -> None:
        """No allowed choice has s."""
        self.hold(v, s)
        need(self.alone(v, s), f"strategy {s} of node {v} may be chosen")
        self.drop(v, s)

    def worse(self, v: int, s: int, r: int) -> None:
        """A choice with s may take r instead: it stays allowed, each edge adds the greatest difference at most over what s allows there, so
        that it costs no more, and no member takes more. So if there is a cheap choice there is one without s."""
        self.hold(v, s, r)
        more = NEVER if self.cost[v][r] == NEVER or self.alone(v, s) else self.cost[v][r] - self.cost[v][s]
        if more < NEVER:
            more += sum(max(rows[r][t] - rows[s][t] for t in self.live[w] if rows[s][t] < NEVER) for w, rows in self.near[v].items())
        kept = r != s and more <= 0 and all(usages[r] <= usages[s] for _, _, usages in self.members[v])
        need(kept or self.alone(v, s), f"strategy {r} of node {v} costs or takes more than {s}")
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
        (live, cost), near = (self.live[v], self.cost[v]), list(self.near[v].items())
        need(not self.members[v] and len(near) <= 2, f"node {v} has memory or more than two neighbours")
        if not near:
            self.constant += min(cost[s] for s in live)  # forbidden, where v has nothing to take: no choice is cheap then
        elif len(near) == 1:
            (u, rows), *_ = near
            for t in self.live[u]:
                self.cost[u][t] += min(cost[s] + rows[s][t] for s in live)
        else:
            (u, rows), (w, others) = near
            best: Rows = [[NEVER] * len(self.cost[w]) for _ in self.cost[u]]
            for t in self.live[u]:
                own = [(cost[s] + rows[s][t], others[s]) for s in live if cost[s] + rows[s][t] < NEVER]
                for r in self.live[w]:
                    best[t][r] = min((one + row[r] for one, row in own), default=NEVER)
            self.add(u, w, best)
        self.remove(v)

    def settle(self, v: int) -> None:
        """Members of v that are alive at the same times that count are one, those that take the same whatever v takes are fixed."""
        found: dict[tuple[int, int], Any] = {}
        for start, end, usages in self.members[v]:
            span = bisect_left(self.times, start), bisect_left(self.times, end)
            _, _, before = found.get(span, (0, 0, [0] * len(usages)))
            found[span] = start, end, [one + other for one, other in zip(before, usages, strict=True)]
        self.members[v] = []
        for (first, last), (start, end, usages) in found.items():
            taken = {usages[s] for s in self.live[v]}
            if first < last and len(taken) > 1:
                self.members[v].append((start, end, usages))
            elif first < last:
                self.fixed.append((start, end, taken.pop()))

    def moments(self) -> None:
        """A time need not count where the limit holds whatever is chosen, or where a time beside it that counts is as full in every choice:
        each member that is alive here is alive there, and no less is fixed there. Times go in an order in which that one is still there."""
        for v in self.live:
            self.settle(v)
        held = [(start, end, max(usages[s] for s in self.live[v])) for v in self.live for start, end, usages in self.members[v]]
        starts, fixed = {bisect_left(self.times, start) for start, _, _ in held}, in_use(self.times, self.fixed)
        rises = [place in starts or now not in (0, last) for place, (last, now) in enumerate(pairwise([0, *fixed]))]
        times = [time for time, counts in zip(self.times, rises, strict=True) if counts]  # else as full as the time before, or nothing used
        most = in_use(times, held + self.fixed)
        times = [time for time, taken in zip(times, most, strict=True) if taken > self.limit]
        for side, step in ((1, 1), (0, -1)):  # the next time where none ends before it, and then the last time where none starts after it
            changes, fixed, kept = sorted(member[side] for member in held), in_use(times, self.fixed), []
            for place, time in enumerate(times):
                other = times[place + step] if 0 <= place + step < len(times) else None
                if other is None or bisect_left(changes, other + 1) != bisect_left(changes, time + 1) or fixed[place] > fixed[place + step]:
                    kept.append(time)
            times = kept
        self.times = times
        for v in self.live:
            self.settle(v)

    def beyond(self) -> None:
        """No allowed choice costs as much as all nodes and edges at the most that they allow, and 1: a choice that is not cheap is none."""
        need(self.none, "the bound may not be changed")
        parts = [[self.cost[v][s] for s in own] for v, own in self.live.items()]
        parts += [[rows[s][t] for s in self.live[u] for t in self.live[v]] for u in self.near for v, rows in self.near[u].items() if u < v]
        self.bound = self.constant + 1 + sum(max((cost for cost in part if cost < NEVER), default=0) for part in parts)

    def dual(self, scale: int, prices: Json, messages: Json) -> None:
        """For any prices of memory from 0 on, and any messages that strategies pay and their edges get, no choice costs less than the least
        of each node, with messages and paid memory, and of each edge, without messages, less what the limit is worth: messages cancel, and
        memory in use is at most the limit. A choice pays besides what its strategies and pairs are above these leasts."""
        need(type(scale) is int and scale >= 1, "a scale is below 1")
        total, nodes = self.priced(scale, prices)
        gaps: dict[tuple[int, int], Rows] = {}
        silent = ([u, v, [0] * len(self.live[u]), [0] * len(self.live[v])] for u in self.near for v in self.near[u] if u < v)
        for u, v, to_u, to_v in [*messages, *silent]:
            if (u, v) in gaps or (v, u) in gaps:
                continue  # the first messages of an edge count
            rows = self.near[u][v]
            for node, own in ((u, whole(to_u)), (v, whole(to_v))):
                for s, message in zip(self.live[node], own, strict=True):
                    nodes[node][s] += message
            twos = list(zip(self.live[v], to_v, strict=True))
            gaps[u, v] = [[scale * rows[s][t] - one - two for t, two in twos] for s, one in zip(self.live[u], to_u, strict=True)]
        leasts = {v: min(own.values()) for v, own in nodes.items()}
        edges = {pair: min(map(min, table)) for pair, table in gaps.items()}
        total += scale * self.constant + sum(leasts.values()) + sum(edges.values())
        slack = scale * self.bound - total
        if slack < scale:  # costs are whole: what is above bound - 1 is the bound at least
            raise ClosedError
        above = {v: {s: cost - leasts[v] for s, cost in own.items()} for v, own in nodes.items()}
        self.fix(above, {pair: [[cost - edges[pair] for cost in row] for row in table] for pair, table in gaps.items()}, slack)

    def priced(self, scale: int, prices: Json) -> tuple[int, dict[int, dict[int, Any]]]:
        """What fixed memory costs less what the limit is worth, and what each strategy costs with its memory."""
        need(not prices or self.limit is not None, "memory has a price and no limit")
        order, each = whole([time for time, _ in prices]), whole([one for _, one in prices])
        need(order == sorted(set(order)) and set(order) <= set(self.times), "a price is at a time that does not count")
        need(min(each, default=0) >= 0, "a price is below 0")
        paid = [0, *accumulate(each)]

        def byte(start: int, end: int) -> int:
            return paid[bisect_left(order, end)] - paid[bisect_left(order, start)]

        nodes = {}
        for v, own in self.live.items():
            held = [(byte(start, end), usages) for start, end, usages in self.members[v]]
            nodes[v] = {s: scale * self.cost[v][s] + sum(one * usages[s] for one, usages in held) for s in own}
        return sum(byte(start, end) * taken for start, end, taken in self.fixed) - paid[-1] * (self.limit or 0), nodes

    def fix(self, above: dict[int, dict[int, Any]], gaps: dict[tuple[int, int], Rows], slack: int) -> None:
        """A choice with s of v pays above the leasts what s does, and at each edge at least what the cheapest pair with s does; one with a
        pair pays what the pair does and what both its ends do elsewhere. Where that takes up the slack, no cheap choice has it."""
        sides = {(u, v): (list(map(min, table)), [min(column) for column in zip(*table, strict=True)]) for (u, v), table in gaps.items()}
        for pair, leasts in sides.items():
            for node, own in zip(pair, leasts, strict=True):
                for s, more in zip(self.live[node], own, strict=True):
                    above[node][s] += more
        for (u, v), table in gaps.items():
            ones, twos = (
                [(s, NEVER if above[w][s] == NEVER else above[w][s] - own) for s, own in zip(self.live[w], side, strict=True)]
                for w, side in zip((u, v), sides[u, v], strict=True)
            )
            for (s, one), row in zip(ones, table, strict=True):
                for (t, two), cost in zip(twos, row, strict=True):
                    if one + two + cost >= slack:
                        self.near[u][v][s][t] = self.near[v][u][t][s] = NEVER
        for v, own_above in above.items():
            for s, more in own_above.items():
                if more >= slack:
                    self.drop(v, s)

    def branch(self, v: int, first: Json, *parts: Json) -> None:
        """Every choice takes one of these strategies of v, or one of the others."""
        self.hold(v, *first)
        need(len(parts) == 2, "a branch has not two parts")
        for part, steps in zip((sorted(set(first)), [s for s in self.live[v] if s not in first]), parts, strict=True):
            core = object.__new__(Core)
            core.__dict__.update(self.__dict__, fixed=self.fixed[:], members={w: own[:] for w, own in self.members.items()})
            core.live = {w: own[:] for w, own in self.live.items()} | {v: part}
            core.cost = {w: own[:] for w, own in self.cost.items()}
            core.near = {w: {x: [row[:] for row in rows] for x, rows in own.items()} for w, own in self.near.items()}
            if part:
                close(core, steps)
        raise ClosedError


STEPS = {name: getattr(Core, name) for name in ("never", "worse", "apart", "into", "out", "moments", "dual", "beyond", "branch")}


def close(core: Core, steps: Json) -> None:
    """Carries the steps out until nothing cheap is left; what follows is not read."""
    try:
        for name, *given in steps:
            need(name in STEPS, "there is no such step")
            STEPS[name](core, *given)
    except ClosedError:
        return
    raise RefusedError("the steps leave choices that may cost less than the bound")


def check(certificate: Json, problem: Json = None) -> str:
    """The sentence that is proved."""
    need(certificate["kind"] == "sharding" and certificate["format"] == 1, "its kind or its format is not known here")
    own, answer, bound = certificate["problem"], certificate["answer"], certificate["bound"]
    theirs = own if problem is None else problem.get("problem", problem)
    need(all(own.get(key) == theirs.get(key) for key in ("nodes", "edges", "usage_limit")), "the certificate is about another problem")
    hold_to_form(own)
    need((answer is None) == (bound is None) and (bound is None or type(bound) is int), "an answer and a whole bound belong together")
    if answer is None:
        close(Core(own, None), certificate["steps"])
        return "no choice is allowed" + (" and keeps the limit" if own.get("usage_limit") is not None else "")
    cost, peak = price(own, answer)
    close(Core(own, bound), certificate["steps"])
    need(bound <= cost, f"the answer costs {cost}, below the bound {bound}")
    return f"no choice costs less than {bound}; the answer costs {cost} (memory at its peak {peak})"


def main(paths: list[str]) -> int:
    try:
        need(1 <= len(paths) <= 2, "name a certificate, and perhaps the file of its problem")
        said = f"proved: {check(*map(read, paths))}"
    except Exception as error:  # noqa: BLE001 - whatever goes wrong, nothing is proved
        broken = f"this is no certificate ({type(error).__name__}: {str(error)[:80]})"
        said = f"refused: {error if isinstance(error, (RefusedError, OSError)) else broken}"
    sys.stdout.write(said + "\n")
    return 0 if said.startswith("proved") else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
