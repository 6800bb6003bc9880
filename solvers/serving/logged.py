"""Replay of a log of requests, each with its own arrival and lengths, on the workers of a plan: the schedule of engines, step by step.

In each step every running sequence gets a token (or with drafts as many as are accepted), and what is left of the engine's tokens of a
step goes to prompts, first to those that are begun, then to waiting ones, while there are slots and room in the cache. Where the cache is
full, the sequence that came last gives its room back and is computed again. Groups with attention of their own have slots and cache of
their own, and step together.

    seconds of a step = B(rows) + G(sequences, keys) + sum over prompts of share A(whole)

where B are all kernels but attention, G attention of sequences with what else they take, and A attention of a whole prompt: differences of
steps as they are priced (`crossflow.serving.steps`), in tables.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import ceil, inf

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.serving.steps import Split, Step, step_time
from crossopt.crossflow.serving.workers import Bytes, cache_of_token, transfer_time
from crossopt.crossflow.serving.workers import Requests as Lengths
from crossopt.instances.catalogue.engines import CACHE_BYTES, ENGINES, constants_of_engine
from crossopt.instances.serving.question import ServingQuestion
from crossopt.instances.serving.workers import Offer, Shape, drafts_of, kernels_of, network_of, sent_at

_POINTS, _EXACT, _LEAST = 48, 64, 1.0
"""Points of a table, numbers of rows up to which each has one, and a context of a table."""


@dataclass(slots=True)
class Logged:
    """A request with its times, in seconds from the first arrival."""

    arrived: float
    input: int
    output: int
    first: float = inf
    done: float = inf
    computed: int = 0
    """Tokens of the prompt that are in the cache, of what is to be computed."""
    tokens: float = 0.0
    """Output tokens so far."""

    @property
    def token_time(self) -> float:
        """Seconds per output token after the first."""
        return (self.done - self.first) / (self.output - 1)


class _Table:
    """A function of one figure, linear between points."""

    def __init__(self, points: Sequence[float], values: Array) -> None:
        self.points, self.values = list(points), values.tolist()

    def __call__(self, at: float) -> float:
        index = min(max(bisect_right(self.points, at), 1), len(self.points) - 1)
        low, high = self.points[index - 1], self.points[index]
        share = (at - low) / (high - low)
        value: float = self.values[index - 1] * (1.0 - share) + self.values[index] * share
        return value


def _points(most: float) -> list[float]:
    """Numbers up to a greatest one: all small ones, and others at equal ratios."""
    exact = [float(number) for number in range(1, int(min(_EXACT, most)) + 1)]
    further = np.geomspace(exact[-1], max(most, exact[-1] + 1.0), _POINTS)[1:]
    return [*exact, *map(float, further)]


class _Prices:
    """Seconds of steps of one shape."""

    def __init__(self, question: ServingQuestion, shape: Shape, longest: float) -> None:
        (model, hardware), file = network_of(question, shape), question.file
        kernels = kernels_of(question, shape)[0]
        split = Split(*(np.float64(value) for value in (shape.tensor, shape.pipeline, shape.expert, shape.data)))
        engine, self.drafts = constants_of_engine(file.engine), drafts_of(question, shape)
        self.stages, self.data = float(shape.pipeline), shape.data

        def seconds(step: Step) -> Array:
            return np.asarray(step_time(model, kernels, engine, split, step, hardware, self.drafts))

        sequences = -(-shape.batch // shape.data)
        rows = np.arange(1.0, shape.chunk + (1.0 + self.drafts.drafted) * sequences + 1.0)
        own, every = (seconds(Step(0.0 * rows, 1.0, rows, 0.0, 1.0, groups=groups)) for groups in (1.0, inf))
        self.rows, self.groups = own.tolist(), ((every - own) / max(shape.data - 1.0, 1.0)).tolist()
        numbers, keys = np.array(_points(float(sequences))), np.geomspace(_LEAST, longest, _POINTS // 2)
        verified = numbers * (1.0 + self.drafts.drafted)
        base = np.array([self._apart_from_attention(row, row * shape.data) for row in verified.tolist()])
        self.keys = [_Table(numbers.tolist(), seconds(Step(numbers, np.float64(key))) - base) for key in keys]
        self.contexts = keys.tolist()
        whole = np.geomspace(_LEAST, longest, _POINTS)
        full, none = (seconds(Step(0.0 * whole, 1.0, 1.0, share, whole)) for share in (1.0, 0.0))
        self.whole = _Table(whole.tolist(), full - none)

    def _apart_from_attention(self, most: float, every: float) -> float:
        index = min(max(round(most), 1), len(self.rows)) - 1
        time: float = self.rows[index] + self.groups[index] * (max(every / max(most, 1.0), 1.0) - 1.0)
        return time

    def step(self, most: float, every: float, sequences: float, keys: float, attention: float) -> float:
        """Seconds by rows of the fullest group and of all, its sequences and their mean context, and attention of prompts."""
        time = self._apart_from_attention(most, every) + attention
        if sequences:
            index = min(max(bisect_right(self.contexts, keys), 1), len(self.contexts) - 1)
            low, high = self.contexts[index - 1], self.contexts[index]
            share = (keys - low) / (high - low)
            time += self.keys[index - 1](sequences) * (1.0 - share) + self.keys[index](sequences) * share
        return time


@dataclass(slots=True)
class _Group:
    """Slots and cache of ranks that share attention."""

    slots: int
    room: float
    """Tokens of the cache."""
    waiting: deque[Logged] = field(default_factory=deque)
    begun: deque[Logged] = field(default_factory=deque)
    """Prompts of which a part is computed."""
    running: list[Logged] = field(default_factory=list)
    ends: list[tuple[int, int, Logged]] = field(default_factory=list)
    held: float = 0.0
    """Tokens in the cache."""

    @property
    def load(self) -> int:
        return len(self.waiting) + len(self.begun) + len(self.running)

    @property
    def ready(self) -> bool:
        """Whether a prompt can be computed now."""
        return bool(self.begun) or (bool(self.waiting) and len(self.running) < self.slots and self._fits(self.waiting[0]))

    def _fits(self, request: Logged) -> bool:
        return self.held + request.input + request.tokens <= self.room or not (self.running or self.begun)

    def take(self, tokens: float) -> list[tuple[Logged, int]]:
        """Pieces of prompts of at most so many tokens together."""
        found = list[tuple[Logged, int]]()
        for request in self.begun:
            if tokens >= 1:
                found.append((request, int(min(tokens, _whole(request) - request.computed))))
                tokens -= found[-1][1]
        while tokens >= 1 and self.waiting and len(self.running) + len(self.begun) < self.slots and self._fits(self.waiting[0]):
            request = self.waiting.popleft()
            self.begun.append(request)
            found.append((request, int(min(tokens, _whole(request)))))
            self.held += _whole(request)
            tokens -= found[-1][1]
        return found


def _whole(request: Logged) -> int:
    """Tokens that are computed before the next one: the prompt, and after its room was given back what was there."""
    return request.input + int(request.tokens)


class _Worker:
    """A copy of the model: groups that step together."""

    def __init__(self, prices: _Prices, shape: Shape, room: float, prefills: bool, decodes: bool) -> None:
        self.prices, self.chunk, self.now, self.steps, self.count = prices, shape.chunk, 0.0, 0, 0
        self.prefills, self.decodes = prefills, decodes
        self.groups = [_Group(max(shape.batch // shape.data, 1), room) for _ in range(shape.data)]
        self.accepted, self.verified = prices.drafts.accepted, 1.0 + prices.drafts.drafted

    def load_at(self, time: float) -> float:
        """Requests for each slot; a step that is under way, of which the prompts are through in the end, counts as one."""
        return (sum(group.load for group in self.groups) + (self.now > time)) / sum(group.slots for group in self.groups)

    def add(self, request: Logged) -> None:
        min(self.groups, key=lambda group: group.load).waiting.append(request)

    def run(self, until: float) -> None:
        """Steps that begin before a time."""
        while self.now < until and any(group.load for group in self.groups):
            if self.prefills and any(group.ready for group in self.groups):
                self._mixed()
            else:
                self._decode(until)
        if not any(group.load for group in self.groups):
            self.now = max(self.now, until) if until < inf else self.now

    def _mixed(self) -> None:
        """A step with pieces of prompts."""
        taken = [group.take(self.chunk - self.verified * len(group.running)) for group in self.groups]
        rows = [self.verified * len(group.running) + sum(count for _, count in own) for group, own in zip(self.groups, taken, strict=True)]
        attention = max(sum(self._attention(request, count) for request, count in own) for own in taken)
        self._pass(1, rows, attention)
        for group, own in zip(self.groups, taken, strict=True):
            for request, count in own:
                request.computed += count
                if request.computed == _whole(request):
                    group.begun.remove(request)
                    self._start(group, request)

    def _attention(self, request: Logged, count: int) -> float:
        whole, before = float(_whole(request)), float(request.computed)
        return self.prices.whole(whole) * (((before + count) ** 2 - before**2) / whole**2)

    def _start(self, group: _Group, request: Logged) -> None:
        """The first token of a request, or the next one of one that was computed again."""
        if not request.tokens:
            request.first, request.tokens = min(request.first, self.now), 1.0
            group.held += 1.0
        left = ceil((request.output - request.tokens) / self.accepted)
        if left <= 0 or not self.decodes:
            request.done = self.now if left <= 0 else request.done
            group.held -= _whole(request)
            return
        self.count += 1
        group.running.append(request)
        heappush(group.ends, (self.steps + left, self.count, request))

    def _decode(self, until: float) -> None:
        """Steps without prompts, until a sequence ends or others come."""
        if not any(group.running for group in self.groups):
            self.now = until if until < inf else self.now
            if until == inf:
                raise ValueError("a request is longer than the cache of its worker")
            return
        many = min(group.ends[0][0] for group in self.groups if group.ends) - self.steps
        for group in self.groups:
            if group.running:
                many = min(many, max(int((group.room - group.held) / (len(group.running) * self.accepted)), 1))
        rows = [self.verified * len(group.running) for group in self.groups]
        if until < inf:
            many = min(many, max(ceil((until - self.now) / self._seconds(1, rows, 0.0)), 1))
        self._pass(many, rows, 0.0)

    def _seconds(self, many: int, rows: Sequence[float], attention: float) -> float:
        """Of each of so many steps, at their mean context."""
        sequences, keys = 0, 0.0
        for group in self.groups:
            if len(group.running) >= sequences and group.running:
                sequences = len(group.running)
                own = (group.held - sum(_whole(request) for request in group.begun)) / sequences + self.accepted * many / 2.0
                keys = max(keys, own)
        return self.prices.step(max(rows), sum(rows), sequences / self.prices.stages, keys, attention)

    def _pass(self, many: int, rows: Sequence[float], attention: float) -> None:
        """Steps in which all running sequences get tokens."""
        self.now += many * self._seconds(many, rows, attention)
        self.steps += many
        for group in self.groups:
            group.held += self.accepted * many * len(group.running)
            while group.ends and group.ends[0][0] <= self.steps:
                _, _, request = heappop(group.ends)
                request.done, request.tokens = self.now, float(request.output)
                group.held -= request.input + request.output
                group.running.remove(request)
            group.held = max(group.held, 0.0)
            while group.held > group.room and len(group.running) > 1:
                self._give_back(group)

    def _give_back(self, group: _Group) -> None:
        """The sequence that came last waits again, in front."""
        request = group.running.pop()
        end = next(entry for entry in group.ends if entry[2] is request)
        group.ends.remove(end)
        group.ends.sort()
        request.tokens, request.computed = max(request.output - (end[0] - self.steps) * self.accepted, 1.0), 0
        group.held -= request.input + request.tokens
        group.waiting.appendleft(request)


def cache_room(question: ServingQuestion, shape: Shape, offer: Offer) -> float:
    """Tokens for which the cache of a group has room; activations are part of what the engine keeps back, as far as that goes."""
    (model, _), kind = network_of(question, shape), question.kind_of(shape.device)
    split = Split(*(np.float64(value) for value in (shape.tensor, shape.pipeline, shape.expert, shape.data)))
    token = float(cache_of_token(model, split, Bytes(0.0, CACHE_BYTES[shape.cache])))
    reserve = ENGINES[question.file.engine].reserve if question.file.reserve is None else question.file.reserve
    return max(kind.usable_memory - offer.weights - max(offer.working - reserve, 0.0), 0.0) / token


def replay_log(question: ServingQuestion, workers: Sequence[tuple[int, Offer]], requests: Sequence[Logged]) -> None:
    """Fill in first and last tokens of all requests, in the order of their arrival."""
    longest = float(max(request.input + request.output for request in requests))
    own = {"both": list[_Worker](), "prefill": list[_Worker](), "decode": list[_Worker]()}
    for count, offer in workers:
        shape = offer.shape
        prices, room = _Prices(question, shape, longest), cache_room(question, shape, offer)
        for _ in range(count):
            own[shape.role].append(_Worker(prices, shape, room, shape.role != "decode", shape.role != "prefill"))
    front = own["both"] or own["prefill"]
    _serve(front, [(request.arrived, request) for request in requests])
    if own["decode"]:
        shape = next(offer.shape for _, offer in workers if offer.shape.role == "prefill")
        link = sent_at(question, {offer.shape.device for _, offer in workers})
        model, stored = network_of(question, shape)[0], Bytes(0.0, CACHE_BYTES[shape.cache])
        ready = list[tuple[float, Logged]]()
        for request in requests:
            if request.output > 1:
                ready.append((request.first + float(transfer_time(model, Lengths(request.input, request.output), stored, link)), request))
        _hand_over(own["decode"], sorted(ready, key=lambda pair: pair[0]))


def _serve(workers: Sequence[_Worker], arrivals: Sequence[tuple[float, Logged]]) -> None:
    for at, request in arrivals:
        for worker in workers:
            worker.run(at)
        min(workers, key=lambda worker: (worker.load_at(at), worker.now)).add(request)  # of equal ones that which is free first
    for worker in workers:
        worker.run(inf)


def _hand_over(workers: Sequence[_Worker], ready: Sequence[tuple[float, Logged]]) -> None:
    """Prompts whose cache has passed wait for a slot, and get their first token with it."""
    for at, request in ready:
        for worker in workers:
            _admit(worker, at)
        min(workers, key=lambda worker: worker.load_at(at)).add(request)
    for worker in workers:
        _admit(worker, inf)


def _admit(worker: _Worker, until: float) -> None:
    """Decode steps that begin before a time; sequences enter between two."""
    while any(group.load for group in worker.groups):
        for group in worker.groups:
            while group.waiting and len(group.running) < group.slots and group._fits(group.waiting[0]):
                request = group.waiting.popleft()
                group.held += _whole(request)
                request.first, request.tokens = worker.now, 1.0
                worker._start(group, request)
        if worker.now >= until:
            return
        worker._decode(until)
    worker.now = max(worker.now, until) if until < inf else worker.now
