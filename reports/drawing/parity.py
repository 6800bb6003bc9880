"""Two figures of the same things against each other, with the line on which they are equal."""

from collections.abc import Iterator, Sequence
from typing import Final

from crossopt.reports.drawing.charts import WIDTH, Titles, round_steps
from crossopt.reports.drawing.svg import dot, line, picture, width_of, words

_LEFT: Final = 76.0
_TOP: Final = 22.0
_TALL: Final = 300.0


def diagonal(titles: Titles, pairs: Sequence[tuple[float, float]], one: tuple[float, float, str], axes: tuple[str, str]) -> str:
    """Pairs as hollow marks and one of them as a full one with its name; `axes` are across and upward."""
    values = [value for pair in (*pairs, one[:2]) for value in pair]
    low, high = min(values), max(values)
    margin = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    low, high = low - margin, high + margin
    room = WIDTH - _LEFT - 12.0

    def at(pair: tuple[float, float]) -> tuple[float, float]:
        return _LEFT + room * (pair[0] - low) / (high - low), _TOP + _TALL * (high - pair[1]) / (high - low)

    body = [words(0.0, 11.0, axes[1], "m"), words(_LEFT + room / 2.0, _TOP + _TALL + 36.0, axes[0], "m", "middle")]
    body += _ticks(low, high, room)
    body.append(line([at((low, low)), at((high, high))], "mark"))
    body += [dot(*at(pair), 3.0, "hollow") for pair in pairs]
    x, y = at(one[:2])
    body.append(dot(x, y, 5.0, "k1 cut"))
    text = one[2]
    side = x + 10.0 if x + 14.0 + width_of(text) < WIDTH else x - 10.0 - width_of(text)
    body.append(words(side, min(y + 20.0, _TOP + _TALL - 4.0), text, "t"))
    return picture(titles.name, titles.title, titles.description, (WIDTH, _TOP + _TALL + 42.0), body)


def _ticks(low: float, high: float, room: float) -> Iterator[str]:
    for tick in round_steps(low, high, 6):
        share = (tick - low) / (high - low)
        x, y = _LEFT + room * share, _TOP + _TALL * (1.0 - share)
        yield line([(_LEFT, y), (_LEFT + room, y)], "grid")
        yield words(_LEFT - 8.0, y + 4.0, f"{tick:.6g}", "m n", "end")
        yield line([(x, _TOP), (x, _TOP + _TALL)], "grid")
        yield words(x, _TOP + _TALL + 18.0, f"{tick:.6g}", "m n", "middle")
