"""What a loader asks of a place that has samples."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tensorlake_spark.datasets.samples.padding import Blank
from tensorlake_spark.loader.columns.values import Array, Values

MOST_TOLD = 256
"""Files that a process is taken to know. It keeps more footers of each table: see `sample_files.KEPT_FILES`."""


class Told:
    """The files that a process was told of last.

    Examples
    --------
    >>> told = Told()
    >>> told.new("x", [1, 2]), told.new("x", [2, 3]), told.new("y", [2])
    ([1, 2], [3], [2])
    """

    def __init__(self) -> None:
        self._files: OrderedDict[tuple[str, int], None] = OrderedDict()

    def new(self, table: str, numbers: Sequence[int]) -> list[int]:
        """Return those files of a table that it does not know, and take it that it knows all of them now."""
        new = [number for number in numbers if (table, number) not in self._files]
        for number in numbers:
            self._files[table, number] = None
            self._files.move_to_end((table, number))
        while len(self._files) > MOST_TOLD:
            self._files.popitem(last=False)
        return new


class FetchedSamples(Protocol):
    """Some samples whose bytes are in memory, or mapped."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory that their values will take, about; no less where that can be known."""

    @property
    def raw_nbytes(self) -> int:
        """Bytes of memory that they take before, in copies of what was read; 0 where files are mapped."""

    @property
    def hits(self) -> int:
        """Pieces of files in a store that were kept."""

    @property
    def misses(self) -> int:
        """Pieces that the store was asked for."""

    def values(self, draws: Mapping[str, Array]) -> dict[str, Values]:
        """Return the values of all columns, in the order in which the samples were asked for.

        Parameters
        ----------
        draws : mapping of str to float64 ndarray of shape (samples, k)
            For each column whose transform takes random numbers: those of each sample, from 0 to 1.
        """


class SampleSource(Protocol):
    """Samples by position: what is read of them, and what a plan has to know.

    Attributes
    ----------
    what : str
        The place, for messages, such as ``the dataset at s3://bucket/coco``.
    version : int, or None
        The version that is read.
    names : tuple of str
        Columns that are delivered.
    """

    what: str
    version: int | None
    names: tuple[str, ...]

    @property
    def blanks(self) -> Mapping[str, Blank]:
        """What an array of no values is, of columns that have arrays of a known rank; see `padding.blank_of`."""

    @property
    def identity(self) -> bytes:
        """The same for the same table wherever it lies."""

    @property
    def sample_bytes(self) -> float:
        """Mean bytes of a sample as it is stored."""

    @property
    def is_remote(self) -> bool:
        """Whether a read waits for an object store."""

    @property
    def reserved(self) -> float:
        """The part of a loader's memory, from 0 to 1, that is for what was read and is not made into batches yet."""

    def __len__(self) -> int:
        """How many samples there are."""

    @property
    def starts(self) -> Array:
        """Places where runs of samples begin that lie together, and at the end the count: int64."""

    @property
    def lying(self) -> Array | None:
        """The positions of the samples in the order in which they lie; None where they lie in their order."""

    def for_worker(self, workers: int) -> SampleSource:
        """Return the same samples for one of several processes, which has its part of the memory; it pickles."""

    def facts(self, positions: Array, told: Told) -> Any:
        """Return what a process needs to know to read samples, and was not told yet; what is false is nothing.

        Parameters
        ----------
        positions : int64 ndarray
            Which samples.
        told : Told
            The files of which that process knows.
        """

    def learn(self, facts: Any) -> None:
        """Know what `facts` returned in another process."""

    def fetch(self, positions: Array) -> FetchedSamples:
        """Read the bytes of some samples."""

    def described(self, position: int) -> str:
        """Return how a message names a sample: its number and its file."""

    def draws(self) -> Mapping[str, int]:
        """Return how many random numbers a sample takes, for each column whose transform takes any."""
