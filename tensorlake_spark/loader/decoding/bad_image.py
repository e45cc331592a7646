"""The error for an image of a batch that cannot be decoded."""

from __future__ import annotations

from tensorlake_spark.errors import CorruptDataError


class BadImage(CorruptDataError):
    """An image of a batch is not what was written, or cannot be decoded.

    Parameters
    ----------
    number : int
        Its place in the batch, from 0.
    reason : str
        What is wrong with it.

    Examples
    --------
    >>> error = BadImage(3, "its checksum is another one")
    >>> error.number, str(error)
    (3, 'image 3 of the batch cannot be decoded: its checksum is another one')
    """

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"image {number} of the batch cannot be decoded: {reason}")
        self.number = number
        self.reason = reason

    def __reduce__(self) -> tuple[type[BadImage], tuple[int, str]]:
        return BadImage, (self.number, self.reason)
