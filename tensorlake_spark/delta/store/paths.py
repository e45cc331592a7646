"""Names of files that others wrote, into a log or a note: none may lead out of the folder of its table."""

from __future__ import annotations

import os
import re
import sys
from typing import Any
from urllib.parse import unquote

from tensorlake_spark.errors import FormatError, InvalidOptionError, UnsupportedFeatureError

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# Nobody percent-encodes these, and no part may be left out.
_ONE_SPELLING = re.compile(r"(?!.*(^|/)\.?/)[\w./=-]+", re.ASCII)
_PLAIN = re.compile(r"[\w-]+(\.[\w-]+)*", re.ASCII)  # of one part, and no other form


def absolute(path: str) -> str:
    """Return the whole path of a folder that a caller names, with ``~`` for the home folder.

    Raises
    ------
    InvalidOptionError
        If it is a relative one, and the folder in which this process runs was deleted. Or if the names of files are not
        in UTF-8 for this process: deltalake's are, so that the log would lie in another folder than the data.

    Examples
    --------
    >>> absolute("/data/./lake/")
    '/data/lake'
    """
    try:
        found = os.path.abspath(os.path.expanduser(path))
        if not found.isascii() and sys.getfilesystemencoding() != "utf-8":
            raise InvalidOptionError(
                f"the place of the table {found!r:.200} has letters beyond ASCII, and this process writes names of "
                f"files in {sys.getfilesystemencoding()}, where the log is in UTF-8; set PYTHONUTF8=1, or "
                "LC_ALL=C.UTF-8"
            )
        return found
    except FileNotFoundError as error:
        raise InvalidOptionError(
            f"the place of the table {path!r:.200} is a relative path, and the folder in which this process runs was "
            "deleted; give the whole path, or os.chdir to a folder that is there"
        ) from error


def inside(name: str) -> str:
    """Return the name of a file in the folder of a table, if it cannot lead out of it.

    The log may have names percent-encoded, even twice, so each form is looked at.

    Raises
    ------
    FormatError
        If the name is absolute, has a scheme, a ``..`` among its parts, or a control character,
        with which a message could pretend to be several.

    Examples
    --------
    >>> inside("part-1.parquet"), inside("a/..b/c.parquet")
    ('part-1.parquet', 'a/..b/c.parquet')
    """
    if is_plain(name):
        return name
    form, before = name, ""
    while form != before:
        parts = form.replace("\\", "/").split("/")
        odd = _CONTROL.search(form) or _SCHEME.match(form)
        if ".." in parts or (form and not parts[0]) or odd:
            raise FormatError(
                f"the table names the file {name!r:.300}, which lies outside of its folder or has no place "
                "there; nothing was read: do not trust this table, unless it was a shallow clone of Spark, whose "
                "earlier versions have such names; spark.read.format('delta') reads these"
            )
        form, before = unquote(form), form
    return name


def is_plain(name: str) -> bool:
    """Whether a name is of letters, digits, ``-``, ``_`` and single dots, as those of our own files.

    Examples
    --------
    >>> is_plain("part-1.parquet"), is_plain("..")
    (True, False)
    """
    return _PLAIN.fullmatch(name) is not None


def path_of(action: dict[str, Any]) -> str:
    """Return the name of the file of an action of the log, where it stands percent-encoded (as `inside`)."""
    return inside(unquote(action["path"]))


def live_path(name: str, uri: str) -> str:
    """Return the name of a live file of a table, which the log has in the spelling of the file itself.

    deltalake gives names as they stand in the log, and removes a file only by the spelling that it would give it: of
    another one it would remove nothing, and what was written in its stead would be there twice.

    Parameters
    ----------
    name : str
        As it stands in the log.
    uri : str
        The table, for messages.

    Raises
    ------
    UnsupportedFeatureError
        If the file lies outside of the table, or the log has its name with characters that some percent-encode, or
        with parts that say nothing, such as ``./``: a vacuum would not know the file by it, and delete it.
    FormatError
        As `inside`.

    Examples
    --------
    >>> live_path("2026/part-1.parquet", "lake")
    '2026/part-1.parquet'
    """
    if is_plain(name):
        return name
    if "://" in name or name.startswith(("/", "file:")):
        raise UnsupportedFeatureError(
            f"the table at {uri} names the file {name} outside of itself (a shallow clone); "
            "spark.read.format('delta') reads it"
        )
    if _ONE_SPELLING.fullmatch(inside(name)) is None:
        raise UnsupportedFeatureError(
            f"the table at {uri} has the file {name!r:.300}, in whose name are characters that a log may spell in "
            "several ways, and tensorlake_spark would not find or not remove it; an UPDATE by Spark that sets a column "
            "to itself writes its rows to a file of another name"
        )
    return name
