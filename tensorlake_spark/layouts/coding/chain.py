"""The codecs of dense blocks by name: reversible steps, then one compressor.

A codec has a name such as ``delta(-2)+shuffle+zstd``, a chain of steps that is read from left to right when
writing. The name is stored in every row, so a reader needs nothing else. The steps work on the bit patterns
of the elements (as unsigned integers), which is why NaN payloads and signed zeros survive:

``transpose``
    The axes in the opposite order, for all that follows: of a table, column after column.
``decimal(k)``
    Floats with k decimal places become integers. A block that has others takes `UNFIT` instead.
``delta(-1)``
    Difference to the neighbour before on the last axis, modulo the word.
``delta(-2)``
    Difference to the row before. The rows (that axis first, then the others) are cut into bands of
    `deltas.BAND`; the first row of a band is coded by ``delta(-1)``. So a band can be decoded without those
    before it, and undoing the step is 32 long vector additions, over all bands at once, instead
    of one short one for every row.
``lorenzo``
    Differences along all axes, floats by their order.
``lorenzo(float)``
    The same with neighbours that are added as floats. A block that has floats of extreme size takes ``lorenzo``.
``zigzag``
    Small words of either sign become small unsigned ones.
``shuffle``
    All first bytes of the words, then all second bytes, and so on.
``nibbles``
    The lowest four bits of all words, then the next four, two words to a byte.
``bins``
    In which bin each word lies, and then its place in the bin.
``pack``
    In place of a compressor: as few bits for each word as the largest of sixteen needs.
``zstd``, ``raw``
    The compressor, or none.
``pco``
    A codec by itself, which needs a package: Pcodec.

Before all of them may stand one step that quantises: ``cast(float16)``, ``int8``, ``error(0.001)`` or ``split``.
It makes what the rest of the chain, the inner one, codes. `tensorlake_spark.layouts.quantization` has these steps.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

from tensorlake_spark.errors import InvalidOptionError, did_you_mean
from tensorlake_spark.layouts.coding.filters.decimals import PLACES
from tensorlake_spark.layouts.kernels.steps import has_planes

SINCE = {
    "raw": "0.1.0",
    "zstd": "0.1.0",
    "shuffle": "0.1.0",
    "delta": "0.1.0",
    "lorenzo": "0.2.0",
    "zigzag": "0.2.0",
    "nibbles": "0.2.0",
    "bins": "0.2.0",
    "pack": "0.2.0",
    "transpose": "0.2.0",
    "decimal": "0.2.0",
    "pco": "0.2.0",
    "cast": "0.2.0",
    "int8": "0.2.0",
    "error": "0.2.0",
    "split": "0.2.0",
}
"""By the name of a step, the release of this package that reads it first; FORMAT.md has the same table."""

UPGRADE = "a later release of tensorlake-spark reads it: upgrade"
"""The end of what is said of that which only a later release knows."""

UNFIT = "shuffle+zstd"
"""The codec of a block that ``decimal`` does not fit."""

CASTS = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
"""The dtypes of the step ``cast``."""

TRANSPOSE = "transpose+"
"""How the name of a codec begins that has this step, after a step that quantises."""

_FIRST = re.compile(r"(int8|split|cast\(\w+\)|error\([^()]*\))\+(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Codec:
    """One way to write the elements of a block.

    Attributes
    ----------
    name : str
        One of `CODECS`.
    delta : int
        0, -1 or -2: the axis along which differences are stored.
    shuffle : bool
        Whether the bytes of the words are regrouped.
    compress : bool
        Whether zstd follows.
    lorenzo, zigzag, bins, pco, nibbles : bool
        Whether the codec has these steps.
    places : int or None
        Decimal places of the step ``decimal``.
    packed, floats : bool
        Whether the words are packed, and whether `lorenzo` adds floats.
    turned : Codec or None
        Of a codec with the step ``transpose``: what follows it. The codec itself has no other step then.
    """

    name: str
    delta: int
    shuffle: bool
    compress: bool
    lorenzo: bool = False
    zigzag: bool = False
    bins: bool = False
    pco: bool = False
    places: int | None = None
    nibbles: bool = False
    packed: bool = False
    floats: bool = False
    turned: Codec | None = None

    def beginning(
        self, shape: Sequence[int], src: Sequence[slice], word_bytes: int
    ) -> tuple[int, ...] | None:
        """Return the shape of the beginning of a block in which a part of it lies; None if it has to be read whole.

        The bytes before compression begin with those of that beginning, as if the block were no longer, unless a step
        spreads each element over all of them. Packed words are found one by one, so the beginning ends on every axis.

        Examples
        --------
        >>> CODECS["delta(-2)+zstd"].beginning((3, 64, 100), [slice(0, 3), slice(5, 9), slice(0, 100)], 1)
        (3, 9, 100)
        >>> CODECS["shuffle+zstd"].beginning((64, 100), [slice(0, 9), slice(0, 100)], 4) is None
        True
        """
        if not shape or any(part.start >= part.stop for part in src):
            return None
        if self.packed:
            is_whole = self.floats and not has_planes(shape)
            return tuple(shape) if is_whole else tuple(part.stop for part in src)
        spread = self.bins or self.nibbles or self.pco or (self.shuffle and word_bytes > 1)
        if spread or not self.compress:
            return None
        axis = len(shape) - 2 if self.delta == -2 and len(shape) > 1 else 0
        return (*shape[:axis], src[axis].stop, *shape[axis + 1 :])


def _chains() -> dict[str, Codec]:
    """Return all codecs by name, those without the later steps first."""
    out = {"raw": Codec("raw", 0, False, False)}
    choices = product(
        (None, *PLACES),
        ("", "zigzag"),
        ("", "delta(-1)", "delta(-2)", "lorenzo", "lorenzo(float)"),
        ("zstd", "shuffle+zstd", "nibbles+zstd", "bins+zstd", "pack"),
    )
    for places, fold, less, end in choices:
        floats = less == "lorenzo(float)"
        if floats and places is not None:
            continue  # what follows decimal are integers
        scale = "" if places is None else f"decimal({places})"
        name = "+".join(step for step in (scale, less, fold, end) if step)
        delta = -int(less[-2]) if less.startswith("delta") else 0
        group = end.partition("+")[0]
        out[name] = Codec(
            name, delta, group == "shuffle", compress=end != "pack", lorenzo=less.startswith("lorenzo"),
            zigzag=bool(fold), bins=group == "bins", nibbles=group == "nibbles", places=places, packed=end == "pack",
            floats=floats,
        )  # fmt: skip
    out["pco"] = Codec("pco", 0, False, False, pco=True)
    return out


CODECS = _chains()
"""Every codec that this package knows, by name; each of them may follow `TRANSPOSE`."""


@lru_cache(maxsize=1024)
def codec_of(name: str) -> Codec:
    """Return the codec of that name.

    Raises
    ------
    InvalidOptionError
        If the name is not one of `CODECS`.

    Examples
    --------
    >>> codec_of("delta(-2)+zigzag+shuffle+zstd").delta, codec_of("transpose+raw").turned.name
    (-2, 'raw')
    """
    inner = name.removeprefix(TRANSPOSE)
    if inner in CODECS:
        found = CODECS[inner]
        return found if inner == name else Codec(name, 0, False, False, turned=found)
    known = ("auto", "smallest", *CODECS, *(TRANSPOSE + codec for codec in CODECS))
    raise InvalidOptionError(
        f"unknown codec {name!r}{did_you_mean(name, known)}; known are auto, smallest, raw, pco, and chains of these "
        "steps in this order, all but the last optional: transpose, decimal(0) to decimal(9), one of delta(-1), "
        "delta(-2), lorenzo and lorenzo(float), zigzag, one of shuffle, nibbles and bins, zstd; pack may stand in "
        "place of the last two, and transpose before raw and pco too; lorenzo(float) may not follow decimal"
    )


def parted(name: str) -> tuple[str, str]:
    """Return the step of a codec that quantises, empty where there is none, and the name of the inner codec.

    Examples
    --------
    >>> parted("error(0.001)+lorenzo+zstd"), parted("zstd")
    (('error(0.001)', 'lorenzo+zstd'), ('', 'zstd'))
    """
    found = _FIRST.fullmatch(name)
    return (found[1], found[2]) if found else ("", name)


def is_copied(name: str) -> bool:
    """Whether blocks of a codec are only copied, turned or not.

    Examples
    --------
    >>> is_copied("raw"), is_copied("transpose+raw"), is_copied("zstd")
    (True, True, False)
    """
    return name.removeprefix(TRANSPOSE) == "raw"


def is_packed(name: str) -> bool:
    """Whether a codec packs what its other steps left: a read decodes only the words that it asks for.

    Examples
    --------
    >>> is_packed("lorenzo(float)+zigzag+pack"), is_packed("zigzag+zstd")
    (True, False)
    """
    return name.endswith("+pack")


def argument_of(step: str) -> str:
    """Return what is between the brackets of a step.

    Examples
    --------
    >>> argument_of("cast(float16)"), argument_of("int8")
    ('float16', '')
    """
    return step.partition("(")[2].rstrip(")")


@lru_cache(maxsize=1024)
def is_known(name: str) -> bool:
    """Whether this package reads a codec, with a step that quantises or without.

    Examples
    --------
    >>> is_known("int8+zstd"), is_known("error(-1)+zstd"), is_known("error()+zstd"), is_known("cast(int4)+zstd")
    (True, False, False, False)
    """
    step, inner = parted(name)
    if inner.removeprefix(TRANSPOSE) not in CODECS:
        return False
    given = argument_of(step)
    if step.startswith("cast"):
        return given in CASTS
    return _is_bound(given) if step.startswith("error") else True


def _is_bound(text: str) -> bool:
    """Whether a text is a positive number as Python prints it, and its double is finite."""
    try:
        bound = float(text)
    except ValueError:
        return False
    return bound > 0 and math.isfinite(2 * bound) and repr(bound) == text


class _Known(Collection[str]):
    """The names of all codecs of dense rows. Those with a bound are without number."""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and is_known(name)

    def __iter__(self) -> Iterator[str]:
        return iter(CODECS)

    def __len__(self) -> int:
        return len(CODECS)


KNOWN: Collection[str] = _Known()
"""What this package reads: ``name in KNOWN``. It lists those without a step that quantises or transposes."""


def reader_of(name: Any) -> str:
    """Return from which release on this package reads a codec, in words.

    Examples
    --------
    >>> reader_of("lorenzo+zigzag+shuffle+zstd"), reader_of("wavelet+zstd")
    ('release 0.2.0', 'a later release')
    """
    if name not in KNOWN:
        return "a later release"
    first, inner = parted(name)
    steps = [step.partition("(")[0] for step in (*([first] if first else ()), *inner.split("+"))]
    return f"release {max(SINCE[step] for step in steps)}"


def unread(name: Any, layout: str) -> str:
    """Return what is said of a stored row whose codec its layout does not have here.

    Examples
    --------
    >>> unread("wavelet+zstd", "ftsf")
    "codec 'wavelet+zstd' (step 'wavelet') is not one that this release reads in layout ftsf; a later release of \
tensorlake-spark reads it: upgrade"
    """
    steps = [step for step in str(name).split("+") if step.partition("(")[0] not in SINCE]
    step = f" (step {steps[0]!r:.80})" if steps else ""
    return (
        f"codec {name!r:.80}{step} is not one that this release reads in layout {layout}; {UPGRADE}"
    )
