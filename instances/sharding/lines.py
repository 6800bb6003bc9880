"""Where the values of a large JSON text stand, so that faults that show only later are told with their lines."""

import re
from array import array
from bisect import bisect_right
from dataclasses import dataclass, field

from crossopt.instances.errors import Fault


@dataclass(slots=True)
class Lines:
    """Positions of values in a text by their paths; elements of long lists lie in arrays, eight bytes each."""

    text: str
    values: dict[str, int] = field(default_factory=dict)
    elements: dict[str, "array[int]"] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)
    """Of the lines, once a fault asks for them."""

    def fault(self, path: str, message: str) -> Fault:
        """At the value of this path, or at the innermost one around it that the text has."""
        return self.fault_at(self._position(path), path, message)

    def fault_at(self, position: int, path: str, message: str) -> Fault:
        """At a character of the text."""
        self.starts = self.starts or [0, *(found.end() for found in re.finditer("\n", self.text))]
        line = bisect_right(self.starts, position)
        return Fault(line, position - self.starts[line - 1] + 1, path, message)

    def _position(self, path: str) -> int:
        listed, _, place = path.removesuffix("]").rpartition("[")
        if listed in self.elements and place.isdecimal():
            return self.elements[listed][int(place)]
        while path and path not in self.values:
            path = path.rpartition(".")[0]
        return self.values.get(path or "problem", 0)
