"""What may be stored as a link, and what of it may be shown."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tensorlake_spark.errors import InvalidLinkError

LONGEST = 8192
"""Characters of a link, at most: what servers take at most, too."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
# Parameters by which a URL proves what it may do: signatures of AWS, Google, Azure and CloudFront, keys and tokens.
_SECRET = re.compile(
    r"(?i)(x-(amz|goog|oss|cos|obs)-(signature|credential|security-token)"
    r"|(aws|google|oss)access(key)?id|key-pair-id|signature|sign|sig|hmac|hm|hdnea|jwt|auth|authorization|apikey"
    r"|(\w*[-_.])?(token|secret|password|passwd|pwd|credentials?|(api|access|auth|private|secret)[-_]?key))"
)
_LONG_KEY = re.compile(r"[\w-]{24,}")  # `key` may also be the name of an object


@dataclass(frozen=True, slots=True)
class LinkUrl:
    """A link, taken apart.

    Attributes
    ----------
    kind : str
        ``"file"``, ``"http"`` or ``"s3"``.
    text : str
        As it is stored: an absolute path, ``s3://bucket/key``, or a URL.
    """

    kind: str
    text: str

    @property
    def shown(self) -> str:
        """The link for messages: without its query, which may be a signature."""
        return shown(self.text)

    @property
    def bucket(self) -> str:
        """The bucket of an ``s3`` link."""
        return self.text[len("s3://") :].split("/", 1)[0]

    @property
    def key(self) -> str:
        """The name of the object of an ``s3`` link in its bucket."""
        return self.text[len("s3://") :].split("/", 1)[1]


def shown(text: str) -> str:
    """Return a link for messages, without user, query and fragment.

    Examples
    --------
    >>> shown("https://me:S@example.org/a.jpg?sig=S"), shown("/data/a.jpg")
    ('https://***@example.org/...', '/data/a.jpg')
    """
    if not _SCHEME.match(text):
        return f"{text!r:.300}"[1:-1]
    scheme, _, rest = text.partition("://")
    host, slash, path = rest.partition("/")
    # A password may have any of these in it, so that its end is not known for sure.
    secret = "@" in re.split("[?#]", host)[0] or (
        ":" in host and not re.fullmatch(r"[^:@]*:\d*", host)
    )
    if secret and "@" in rest:
        after = re.split("[/?#]", rest.rpartition("@")[2])[0]
        return f"{scheme}://***@{after}/..."[:300]
    host, path = (re.sub("[?#].*", "?...", part, flags=re.DOTALL) for part in (host, path))
    return f"{scheme}://{host}{slash}{path}"[:300]


def parse_link(link: Any) -> LinkUrl:
    """Return what a user gave as a link, as it may be stored.

    A relative path is refused. It would mean one file here, another one to an executor with another working
    directory, and none after the dataset was copied; and the folder of a dataset may lie on S3.

    Parameters
    ----------
    link : str or path
        An absolute path, ``file:///path``, ``s3://bucket/key`` (also ``s3a://``), or a URL of http or https.

    Raises
    ------
    InvalidLinkError
        If it is none of these, or has a user, a password, a key or a signature in it.

    Examples
    --------
    >>> parse_link("file:///data/a%20b.jpg")
    LinkUrl(kind='file', text='/data/a b.jpg')
    >>> parse_link("s3a://bucket/a.jpg").text
    's3://bucket/a.jpg'
    """
    if not isinstance(link, (str, os.PathLike)) or not isinstance(text := os.fspath(link), str):
        raise InvalidLinkError(
            f"a link is of type {type(link).__name__}; give a path or a URL as text"
        )
    if not text.strip() or len(text) > LONGEST:
        raise InvalidLinkError(f"a link has {len(text)} characters; 1 to {LONGEST} are allowed")
    if _CONTROL.search(text):
        raise InvalidLinkError(f"the link {shown(text)!r} has a control character in it")
    scheme = found[0][:-1].lower() if (found := _SCHEME.match(text)) else ""
    if scheme == "file":
        path = text[len("file:") :]
        return _file(re.sub("^//(localhost)?(?=/)", "", path, flags=re.IGNORECASE), True)
    if not scheme:
        return _file(text, False)
    if scheme in ("s3", "s3a", "s3n"):
        return _s3(text)
    if scheme in ("http", "https"):
        return _http(text)
    raise InvalidLinkError(
        f"the link {shown(text)} begins with {scheme!r}; links are absolute paths, s3://, https:// or http://"
    )


def _file(path: str, is_url: bool) -> LinkUrl:
    path = unquote(path) if is_url else path
    if _CONTROL.search(path):
        raise InvalidLinkError(f"the link {path!r:.300} has a control character in it")
    if is_url and path.startswith("//"):
        raise InvalidLinkError(
            f"the link file:{path:.300} names another machine; write file:///path, or the path"
        )
    if not os.path.isabs(path):
        whole = "expanduser" if path.startswith("~") else "abspath"
        raise InvalidLinkError(
            f"the link {path!r:.300} is a relative path, which means another file to another process; give "
            f"os.path.{whole}(...) of it"
        )
    return LinkUrl("file", path)


def _s3(text: str) -> LinkUrl:
    bucket, _, key = text.partition("://")[2].partition("/")
    if "@" in bucket or ":" in bucket:
        raise InvalidLinkError(_NO_CREDENTIALS.format(shown(text), "a user or a password"))
    if not _BUCKET.fullmatch(bucket) or not key.strip("/"):
        raise InvalidLinkError(
            f"the link {shown(text)} is not s3://BUCKET/KEY, with a bucket of two or more of a-z, 0-9, '-', '_' and '.'"
        )
    if any(part in (".", "..") for part in key.split("/")):
        raise InvalidLinkError(f"the link {shown(text)} has '.' or '..' among the parts of its key")
    if "?" in key:
        _check_query(text, key.partition("?")[2])
    return LinkUrl("s3", f"s3://{bucket}/{key}")


def _http(text: str) -> LinkUrl:
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018  # raises where it is no number
    except ValueError:
        raise InvalidLinkError(f"the link {shown(text)} is not a URL") from None
    if "@" in parts.netloc:
        raise InvalidLinkError(_NO_CREDENTIALS.format(shown(text), "a user or a password"))
    if not parts.hostname or "\\" in parts.netloc:
        raise InvalidLinkError(f"the link {shown(text)} names no host")
    for query in (parts.query, parts.fragment):
        _check_query(text, query)
    return LinkUrl("http", text)


def _check_query(text: str, query: str) -> None:
    """Raise if a query has a parameter by which its URL would prove what it may do."""
    for form in (query, unquote(query), query.replace(";", "&")):
        for name, value in parse_qsl(form, keep_blank_values=True):
            is_key = name.strip().lower() == "key" and _LONG_KEY.fullmatch(value)
            if is_key or _SECRET.fullmatch(name.strip()):
                raise InvalidLinkError(
                    _NO_CREDENTIALS.format(shown(text), f"the parameter {name!r:.60}")
                )


_NO_CREDENTIALS = (
    "the link {} has {} in it, which everybody who reads the table would see; store the plain URL, and give "
    "credentials to the reader: storage options for S3, the name of an environment variable in `tokens` for http"
)
