"""A large JSON text read value by value: long lists become arrays one row at a time, so that no more than a row is ever held as objects."""

import json
import re
from collections.abc import Callable, Iterator

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()

Reader = Callable[["Text"], None]


class TextError(ValueError):
    """What is wrong, and at which character."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class Text:
    """A text and how far it was read."""

    __slots__ = ("position", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def ahead(self) -> str:
        """The next character that is no space; empty at the end."""
        found = _SPACE.match(self.text, self.position)
        self.position = found.end() if found else self.position
        return self.text[self.position : self.position + 1]

    def take(self, characters: str) -> str:
        """One of these characters, or a TextError."""
        character = self.ahead()
        if not character or character not in characters:
            what = f"{character!r} stands" if character else "the text ends"
            raise TextError(f"{what} where {' or '.join(repr(one) for one in characters)} is needed", self.position)
        self.position += 1
        return character

    def value(self) -> object:
        """The next value as plain data."""
        self.ahead()
        try:
            found, self.position = _DECODER.raw_decode(self.text, self.position)
        except json.JSONDecodeError as error:
            raise TextError(error.msg.lower(), error.pos) from error
        except (RecursionError, ValueError) as error:
            raise TextError(str(error)[:80], self.position) from error
        return found


def members(text: Text) -> Iterator[str]:
    """The keys of an object; whoever takes one reads its value before the next."""
    text.take("{")
    if text.ahead() == "}":
        text.take("}")
        return
    while True:
        if text.ahead() != '"':
            raise TextError("a key is needed", text.position)
        key = str(text.value())
        text.take(":")
        yield key
        if text.take(",}") == "}":
            return


def items(text: Text) -> Iterator[int]:
    """The places of a list; whoever takes one reads its value before the next."""
    text.take("[")
    if text.ahead() == "]":
        text.take("]")
        return
    place = 0
    while True:
        yield place
        place += 1
        if text.take(",]") == "]":
            return
