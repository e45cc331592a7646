"""Names of files that others wrote, into a log or a note: none may lead out of the folder of its table."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

from tensorlake_spark.errors import FormatError

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PLAIN = re.compile(r"[\w-]+(\.[\w-]+)*", re.ASCII)  # of one part, and no other form


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
                "there; nothing was read: do not trust this table"
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
