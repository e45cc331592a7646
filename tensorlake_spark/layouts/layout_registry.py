"""The layouts by name. A new layout is one file and one line here."""

from __future__ import annotations

from tensorlake_spark.errors import FormatError, InvalidOptionError, did_you_mean
from tensorlake_spark.layouts.bsgs import Bsgs
from tensorlake_spark.layouts.coding.chain import UPGRADE
from tensorlake_spark.layouts.coo import Coo
from tensorlake_spark.layouts.csc import Csc
from tensorlake_spark.layouts.csf import Csf
from tensorlake_spark.layouts.csr import Csr
from tensorlake_spark.layouts.ftsf import Ftsf
from tensorlake_spark.layouts.layout import Layout
from tensorlake_spark.layouts.window import Window
from tensorlake_spark.tensor.spec import TensorSpec

LAYOUTS: dict[str, Layout] = {
    "ftsf": Ftsf(),
    "window": Window(),
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


def stored_layout(spec: TensorSpec) -> Layout:
    """Return the layout of a tensor of a table.

    Raises
    ------
    FormatError
        If this release does not have it: a later one wrote the tensor.

    Examples
    --------
    >>> import numpy as np
    >>> stored_layout(TensorSpec("x", (5,), np.dtype("uint8"), "ftsf", (2,))).name
    'ftsf'
    """
    if spec.layout not in LAYOUTS:
        raise FormatError(f"tensor {spec.id!r} has {unread_layout(spec.layout)}")
    return LAYOUTS[spec.layout]


def unread_layout(name: str) -> str:
    """Return what is said of a stored layout that this release does not have.

    Examples
    --------
    >>> unread_layout("wavelet").partition(";")[0]
    "layout 'wavelet', which is not one that this release reads"
    """
    return f"layout {name!r:.80}, which is not one that this release reads; {UPGRADE}"
