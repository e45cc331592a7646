"""How values of columns come about: what is asked of each way to do it."""

from __future__ import annotations

from typing import Any, Protocol

from tensorlake_spark.loader.columns.batch_buffers import BatchBuffers
from tensorlake_spark.loader.columns.values import Array, Values


class Reading(Protocol):
    """How one column, or several of a kind, become values.

    Attributes
    ----------
    names : tuple of str
        The columns.
    n_random : int
        Random numbers that a sample takes.
    """

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def n_random(self) -> int: ...

    def read(self, positions: Array) -> Any:
        """Return what is stored of some samples, for the other methods."""

    def nbytes(self, read: Any) -> int:
        """Return the bytes that values will take."""

    def values(
        self, read: Any, positions: Array, draws: Array | None, buffers: BatchBuffers
    ) -> dict[str, Values]:
        """Return values by column.

        Parameters
        ----------
        read : object
            What `read` returned for `positions`.
        positions : int64 ndarray
            Of the samples, in the order of the result.
        draws : float64 ndarray of shape (samples, n_random), or None
            Random numbers of each.
        buffers : BatchBuffers
            Memory for arrays.
        """
