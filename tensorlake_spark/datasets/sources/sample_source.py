"""A source: a schema, pieces of work, and the samples of a piece, streamed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from tensorlake_spark.datasets.sources.folder import Folder
from tensorlake_spark.datasets.types import Type
from tensorlake_spark.errors import InvalidOptionError, InvalidSampleError, did_you_mean

Sample = dict[str, Any]
OnBad = Callable[[InvalidSampleError], None]
Maker = Callable[[], Sample]

_PACKED = 1032
"""Deflate makes of one byte no more than this."""

FILES = 1024
"""Small files of a piece, if its kind has no better measure."""

PIECE_BYTES = 64 << 20
"""Bytes of a piece, where a large file can be cut."""


class NotThisKind(InvalidOptionError):
    """Nothing of a kind lies there, so that another kind may."""


@dataclass(frozen=True)
class Piece:
    """What one task or one thread reads: small and picklable.

    Attributes
    ----------
    name : str
        The same in every run, as long as the same files lie there.
    mark : str
        Changes if one of its files does, as far as sizes and times tell.
    files : tuple of str
        Names in the folder of the source.
    first, last : int
        The range of samples, row groups or records that is meant, where a file is cut; `last` is not in it.
    items : tuple
        What the kind needs beside.
    nbytes : int
        Bytes to read, roughly; a scheduler puts the largest first.
    rows : int or None
        Samples at the most, None where that is not known before it is read.
    """

    name: str
    mark: str
    files: tuple[str, ...]
    first: int = 0
    last: int = 0
    items: tuple[Any, ...] = ()
    nbytes: int = 0
    rows: int | None = None

    @property
    def most(self) -> int:
        """Samples that there can be: of a file that is packed, as many as its bytes could unpack to."""
        if self.rows is not None:
            return self.rows
        packed = any(name.endswith((".gz", ".tgz")) for name in self.files)
        return self.nbytes * (_PACKED if packed else 1) + 1


@dataclass(frozen=True)
class SampleSource(ABC):
    """Samples that lie in files of others; made by `source_of`.

    Attributes
    ----------
    folder : Folder
        Where the files lie.
    schema : mapping of str to Type
        The columns of the samples.
    """

    kind: ClassVar[str]
    names_classes: ClassVar[bool] = False
    """Whether samples have classes by their names: they go into a dataset that has more of them, in another order."""

    folder: Folder
    schema: Mapping[str, Type]

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}  # without listings

    @classmethod
    @abstractmethod
    def found(cls, folder: Folder) -> str:
        """Return what of this kind lies in a folder, as ``"3 tar files"``.

        Raises
        ------
        NotThisKind
            If nothing does; the text says what is missing.
        InvalidOptionError
            If it does, and cannot be read.
        """

    @classmethod
    @abstractmethod
    def of(cls, folder: Folder, **options: Any) -> SampleSource:
        """Return the source, whose schema is known; reads no more than it must for that."""

    @abstractmethod
    def pieces(self) -> list[Piece]:
        """Return the work, cut; every sample is in one piece."""

    @abstractmethod
    def makers(self, piece: Piece) -> Iterator[Maker]:
        """Yield for each sample a function that makes it; the function raises InvalidSampleError for a bad one."""

    def samples(self, piece: Piece, on_bad: OnBad | None = None) -> Iterator[Sample]:
        """Yield the samples of a piece one after the other, as dictionaries of values that the schema's types take.

        Parameters
        ----------
        piece : Piece
            One of `pieces`.
        on_bad : callable, optional
            Called with the error of a bad sample, which is then left out. If a file breaks off, what follows in
            it is left out too.

        Raises
        ------
        InvalidSampleError
            At a bad sample, if there is no `on_bad`: it names the file and the place.
        StorageError
            If the store refuses, or does not answer; that is nobody's bad sample.
        """
        makers = self.makers(piece)
        while True:
            try:
                make = next(makers, None)
                if make is None:
                    return
            except InvalidSampleError as error:  # nothing more comes from these makers
                if on_bad is None:
                    raise
                on_bad(error)
                return
            try:
                sample = make()
            except InvalidSampleError as error:
                if on_bad is None:
                    raise
                on_bad(error)
                continue
            yield sample


def file_pieces(
    folder: Folder, groups: Sequence[tuple[Any, tuple[str, ...]]], name: str, per_piece: int = FILES
) -> list[Piece]:
    """Return pieces of many samples that are a few small files each.

    Parameters
    ----------
    folder : Folder
        Where they lie.
    groups : sequence of tuples
        For each sample what its kind needs to make it, and its files, the first of which names it.
    name : str
        Of the whole, part of the pieces' names.
    per_piece : int
        Samples of a piece.
    """
    made = []
    for start in range(0, len(groups), per_piece):
        part = groups[start : start + per_piece]
        files = tuple(file for _, names in part for file in names)
        made.append(
            Piece(
                f"{name}#{start}-{start + len(part)}",
                folder.mark(files),
                files,
                start,
                start + len(part),
                tuple(item for item, _ in part),
                sum(folder.sizes[file] for file in files),
                len(part),
            )
        )
    return made


def check_options(kind: str, options: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raise InvalidOptionError for an option that a kind does not have."""
    for name in options:
        if name not in known:
            raise InvalidOptionError(
                f"a source of kind {kind!r} has no option {name!r}{did_you_mean(name, known)}; "
                f"it has {', '.join(known) or 'none'}"
            )


def flag_option(name: str, value: Any) -> bool:
    """Return an option that is True or False, and False for None; raises InvalidOptionError if it is something else.

    Examples
    --------
    >>> flag_option("file_names", None), flag_option("file_names", True)
    (False, True)
    """
    if value is not None and not isinstance(value, bool):
        raise InvalidOptionError(
            f"{name}={value!r:.100} is neither true nor false; in a command write {name}=true"
        )
    return bool(value)


def list_option(name: str, value: Any) -> list[str] | None:
    """Return an option that is a list of names; raises InvalidOptionError if it is something else.

    Examples
    --------
    >>> list_option("classes", ("cat", "dog"))
    ['cat', 'dog']
    """
    if value is None:
        return None
    found: list[Any] = [*value] if isinstance(value, (list, tuple)) else [None]
    if not all(isinstance(one, str) for one in found):
        raise InvalidOptionError(
            f"{name}={value!r:.100} is no list of names; give one, such as ['a', 'b']"
        )
    return found


def mapping_option(name: str, value: Any) -> Mapping[str, Any] | None:
    """Return an option that is a mapping of names; raises InvalidOptionError if it is something else.

    Examples
    --------
    >>> mapping_option("columns", {"jpg": "image"})
    {'jpg': 'image'}
    """
    if value is not None and not (
        isinstance(value, Mapping) and all(isinstance(key, str) for key in value)
    ):
        raise InvalidOptionError(
            f"{name}={value!r:.100} is no mapping of names; give one, such as {{'a': 'b'}}"
        )
    return value


def columns_option(value: Any) -> Mapping[str, str] | Sequence[str] | None:
    """Return the columns that are kept, or the new names of some; raises InvalidOptionError if it is neither."""
    is_mapping = isinstance(value, Mapping)
    return mapping_option("columns", value) if is_mapping else list_option("columns", value)
