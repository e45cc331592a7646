"""The layouts by name. A new layout is one file and one line here."""

from __future__ import annotations

from tensorlake_spark.errors import InvalidOptionError, did_you_mean
from tensorlake_spark.layouts.base import Layout
from tensorlake_spark.layouts.bsgs import Bsgs
from tensorlake_spark.layouts.coo import Coo
from tensorlake_spark.layouts.csc import Csc
from tensorlake_spark.layouts.csf import Csf
from tensorlake_spark.layouts.csr import Csr
from tensorlake_spark.layouts.ftsf import Ftsf

LAYOUTS: dict[str, Layout] = {
    "ftsf": Ftsf(),
    "coo": Coo(),
    "csr": Csr(),
    "csc": Csc(),
    "csf": Csf(),
    "bsgs": Bsgs(),
}


def layout_of(name: str) -> Layout:
    """Return the layout of that name.

    Raises
    ------
    InvalidOptionError
        If there is none; the message lists those there are.

    Examples
    --------
    >>> layout_of("ftsf").name
    'ftsf'
    """
    if not isinstance(name, str) or name not in LAYOUTS:
        raise InvalidOptionError(
            f"unknown layout {name!r}{did_you_mean(str(name), LAYOUTS)}; known are {', '.join(LAYOUTS)}"
        )
    return LAYOUTS[name]
