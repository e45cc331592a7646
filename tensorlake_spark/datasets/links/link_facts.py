"""What is known of a link's target, and whether it is still the same."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tensorlake_spark.errors import ChangedLinkError


@dataclass(frozen=True, slots=True)
class LinkFacts:
    """What was looked up when a link was stored: the fields of its struct in the table.

    Attributes
    ----------
    url : str
        The link: an absolute path, ``s3://bucket/key``, or a URL.
    size : int or None
        Bytes of the target; None where a server did not say.
    etag : str or None
        What changes with the target. Of a file it is when it was modified, in nanoseconds, and its size
        (``1700000000000000000-512``); of an object on S3 its ETag; over http the ETag, else the header
        ``Last-Modified``. None where a server said neither.
    """

    url: str
    size: int | None
    etag: str | None

    @property
    def told(self) -> str:
        """What is known, as a part of a sentence."""
        return f"it had {_text(self.size)} bytes and the ETag {_text(self.etag)}"

    def check(self, size: int | None, etag: str | None, shown: str) -> None:
        """Raise ChangedLinkError if the target, which now has these, is another one than then.

        What was not known then, or a size that is not known now, is not compared.

        Examples
        --------
        >>> LinkFacts("/data/a.jpg", 3, '"x"').check(4, '"y"', "/data/a.jpg")
        Traceback (most recent call last):
        tensorlake_spark.errors.ChangedLinkError: what the link /data/a.jpg points to has changed: it had 3 bytes and \
the ETag '"x"' when it was linked, and now it has 4 bytes and the ETag '"y"'; update the link if this is meant
        """
        changed = self.etag is not None and etag != self.etag
        resized = self.size is not None and size is not None and size != self.size
        if changed or resized:
            raise ChangedLinkError(
                f"what the link {shown} points to has changed: {self.told} when it was linked, and now it has "
                f"{_text(size)} bytes and the ETag {_text(etag)}; update the link if this is meant"
            )


def is_etag(text: str) -> bool:
    """Whether a text is an ETag of http, and not a date.

    Examples
    --------
    >>> is_etag('W/"1a"'), is_etag("Tue, 15 Nov 1994 12:45:26 GMT")
    (True, False)
    """
    return re.match(r'(W/)?"', text) is not None


def _text(value: int | str | None) -> str:
    return "unknown" if value is None else f"{value!r:.200}"
