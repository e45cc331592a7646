"""A large JSON object, an item of its lists at a time; only one item is in memory."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import IO, Any

from tensorlake_spark.datasets.sources.folder import damaged
from tensorlake_spark.errors import InvalidSampleError

_STEP = 1 << 20  # bytes that are read at once
_MOST = 64 << 20  # characters of one item
_BLANKS = " \t\r\n"
_SPACE = re.compile(f"[{_BLANKS}]*")


def items_of(stream: IO[bytes], where: str) -> Iterator[tuple[str, Any]]:
    """Yield the key of a list and an item, for all items of all lists of an object; other values as they are.

    Parameters
    ----------
    stream : binary file
        With one JSON object, in UTF-8.
    where : str
        For messages.

    Raises
    ------
    InvalidSampleError
        If it is none, breaks off, or has an item of more than 64 MiB.

    Examples
    --------
    >>> import io
    >>> list(items_of(io.BytesIO(b'{"a": [1, {"b": 2}], "c": "d", "e": []}'), "x"))
    [('a', 1), ('a', {'b': 2}), ('c', 'd')]
    """
    text = _Text(stream, where)
    text.take("{")
    if text.ahead() == "}":
        text.end()
        return
    while True:
        key = text.value()
        if not isinstance(key, str):
            raise text.wrong(f"a key {key!r:.40}")
        text.take(":")
        if text.ahead() == "[":
            text.take("[")
            while text.ahead() != "]":
                yield key, text.value()
                if text.ahead() != "]":
                    text.take(",")
                    if text.ahead() == "]":
                        raise text.wrong("a comma before ]")
            text.take("]")
        else:
            yield key, text.value()
        if text.ahead() == "}":
            text.end()
            return
        text.take(",")


class _Text:
    """What has been read and not yet been parsed."""

    def __init__(self, stream: IO[bytes], where: str) -> None:
        self._stream, self._where = stream, where
        self._text, self._place, self._passed, self._ended = "", 0, 0, False
        self._bytes = codecs.getincrementaldecoder("utf-8-sig")()
        self._json = json.JSONDecoder()

    def ahead(self) -> str:
        """Return the next character that is no space."""
        while True:
            match = _SPACE.match(self._text, self._place)
            self._place = match.end() if match else self._place
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._more():
                raise self.wrong("the end of the file")

    def take(self, wanted: str) -> None:
        if self.ahead() != wanted:
            raise self.wrong(f"{self.ahead()!r} where {wanted!r} should be")
        self._place += 1

    def end(self) -> None:
        """Take the end of the object; nothing may come after it, such as a second one."""
        self.take("}")
        while True:
            if self._text[self._place :].strip(_BLANKS):
                raise self.wrong(f"{self.ahead()!r} after its end")
            if not self._more():
                return

    def value(self) -> Any:
        """Return the next value."""
        self.ahead()
        while True:
            try:
                value, end = self._json.raw_decode(self._text, self._place)
            except RecursionError as error:
                raise self.wrong("values in values, too deep") from error
            except ValueError as error:  # wrong, or not all of it is read
                if len(self._text) - self._place > _MOST or not self._more():
                    raise self.wrong(str(error)) from error
                continue
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if is_number and len(self._text) - end < 4 and self._more():
                continue  # it may go on
            self._place = end
            return value

    def _more(self) -> bool:
        if self._ended:
            return False
        try:  # as much as is waiting, so that a long item is not parsed too often
            data = self._stream.read(max(_STEP, len(self._text) - self._place))
            added = self._bytes.decode(data, final=not data)
        except (OSError, EOFError, ValueError) as error:
            raise damaged(self._where, "this is not JSON", error) from error
        self._ended = not data
        if data:  # otherwise places in the text stay what they are
            self._passed += self._place
            self._text, self._place = self._text[self._place :] + added, 0
        return bool(data)

    def wrong(self, what: str) -> InvalidSampleError:
        place = self._passed + self._place
        return InvalidSampleError(
            f"{self._where}: this is not a JSON object: {what}, at character {place}"
        )
