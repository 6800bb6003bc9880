"""The wire format of protobuf, as far as Chakra needs it: whole numbers of seven bits a byte, and fields of a number and a kind.

    field = varint(8 number + kind), then by kind    0: a varint    1: 8 bytes    2: varint(length), bytes    5: 4 bytes

(protobuf.dev, "Encoding"). What is wrong is told with the byte at which it stands.
"""

from collections.abc import Iterable, Iterator

VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5
_LONGEST = 10
"""Bytes of a varint; 64 bits need no more."""
_WIDTH = {EIGHT: 8, FOUR: 4}
_ALL = (1 << 64) - 1


class WireError(ValueError):
    """Bytes that are no message, and where."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.message, self.at = message, at


def varint_at(data: bytes, at: int, end: int) -> tuple[int, int]:
    """A varint and the place behind it."""
    number, shift = 0, 0
    for place in range(at, min(at + _LONGEST, end)):
        byte = data[place]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & _ALL, place + 1
        shift += 7
    raise WireError("the file ends within a number" if end - at < _LONGEST else "a number has more than ten bytes", at)


def varints_in(data: bytes, at: int, end: int) -> list[int]:
    """All varints of a packed list."""
    found = list[int]()
    while at < end:
        byte = data[at]
        if byte < 0x80:
            found.append(byte)
            at += 1
        else:
            number, at = varint_at(data, at, end)
            found.append(number)
    return found


def span_at(data: bytes, at: int, end: int, what: str) -> tuple[int, int]:
    """Where bytes with their length before them begin and end."""
    length, start = varint_at(data, at, end)
    if length > end - start:
        raise WireError(f"{what} of {length:,} bytes does not fit into the {end - start:,} that are left", at)
    return start, start + length


def fields_in(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Each field's number and kind, and of a varint its value and place, of others where they begin and end."""
    while at < end:
        begin = at
        tag = data[at]
        if tag < 0x80:
            at += 1
        else:
            tag, at = varint_at(data, at, end)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise WireError("a field has the number 0", begin)
        if kind == VARINT:
            value, at = varint_at(data, at, end)
            yield number, kind, value, at
        elif kind == BYTES:
            start, at = span_at(data, at, end, f"field {number}")
            yield number, kind, start, at
        elif kind in _WIDTH:
            start, at = at, at + _WIDTH[kind]
            if at > end:
                raise WireError(f"field {number} ends behind its message", begin)
            yield number, kind, start, at
        else:
            raise WireError(f"a field is of kind {kind}, which protobuf has not in use", begin)


def signed(number: int) -> int:
    """Of the 64 bits of a varint the signed number."""
    return number - (1 << 64) if number >> 63 else number


def varint(number: int) -> bytes:
    """The bytes of a number; of one below zero those of its 64 bits."""
    number &= _ALL
    if number < 0x80:
        return bytes((number,))
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def packed(numbers: Iterable[int]) -> bytes:
    return b"".join(map(varint, numbers))


def number_field(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    return varint(number << 3 | BYTES) + framed(value)


def framed(value: bytes) -> bytes:
    """Bytes with their length before them."""
    return varint(len(value)) + value
