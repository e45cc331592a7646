"""Which part of an image is wanted, and how large."""

from __future__ import annotations

from typing import NamedTuple

Box = tuple[int, int, int, int]
"""Top, left, height and width, in pixels."""


class Region(NamedTuple):
    """What is decoded of an image, in the order of the fields.

    Attributes
    ----------
    box : tuple of int, or None
        Top, left, height and width of the part that is cut out; None for all of the image.
    size : tuple of int, or None
        Height and width to which that part is resized; None to leave it.
    window : tuple of int, or None
        Top, left, height and width of the part that is cut out of what was resized.
    flip : bool
        Whether left and right change places at the end.
    exact : bool
        Whether a JPEG is decoded in full before it is resized. Else it is decoded at a half, a quarter or an eighth of
        its size where that is still as large as wanted, which takes less time and gives slightly other pixels.

    Examples
    --------
    >>> Region((0, 10, 100, 100), (50, 50)).shape(480, 640)
    (50, 50)
    >>> Region().shape(480, 640)
    (480, 640)
    """

    box: Box | None = None
    size: tuple[int, int] | None = None
    window: Box | None = None
    flip: bool = False
    exact: bool = False

    def shape(self, height: int, width: int) -> tuple[int, int]:
        """Return height and width of what comes out of an image of this height and width."""
        if self.window is not None:
            return self.window[2:]
        if self.size is not None:
            return self.size
        return (height, width) if self.box is None else self.box[2:]


WHOLE = Region()
"""All of an image, as it is."""
