"""Names that others gave to columns, as names that a table can have."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tensorlake_spark.errors import InvalidOptionError

_ODD = re.compile(
    r"[ ,;{}()\n\t=/.]"
)  # Delta's, a point that SQL takes for a field, and our mark of a group


def column_names(
    names: Sequence[str], said: Mapping[str, str] | None, where: str
) -> dict[str, str]:
    """Return for each name the name of its column.

    Parameters
    ----------
    names : sequence of str
        As others gave them.
    said : mapping of str to str, optional
        What the user wants some to be called.
    where : str
        For messages.

    Raises
    ------
    InvalidOptionError
        If two would be the same column, or one is called ``sid``.

    Examples
    --------
    >>> column_names(["jpg", "seg.png", "a b"], {"jpg": "image"}, "x")
    {'jpg': 'image', 'seg.png': 'seg_png', 'a b': 'a_b'}
    """
    found = {name: (said or {}).get(name) or _ODD.sub("_", name) or "_" for name in names}
    if len(found) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidOptionError(f"{where}: column {twice!r} is there twice; rename one of them")
    taken: dict[str, str] = {"sid": "the number of a sample"}
    for name, column in found.items():
        other = taken.setdefault(column.lower(), name)
        if other != name or column.lower() == "sid":
            raise InvalidOptionError(
                f"{where}: {name!r} would be the column {column!r}, which is taken by {other!r}; give "
                f"columns={{{name!r}: 'another name'}}"
            )
    return found
