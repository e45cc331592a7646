"""The digest of a table or a tensor: a Merkle tree of what its rows hold, to be kept and compared."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.delta.files import digest_file
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.checksummed_table import LaterFormat
from tensorlake_spark.delta.store.storage import put_file
from tensorlake_spark.errors import (
    CorruptDataError,
    InvalidOptionError,
    TensorNotFoundError,
    did_you_mean,
    storage_error,
)
from tensorlake_spark.layouts.verification import box_text
from tensorlake_spark.rows.row_digest import (
    FILE,
    NO_METADATA,
    ROW_GROUP,
    SIZE,
    TABLE,
    TENSOR,
    node_digest,
)

Array = np.ndarray[Any, Any]


class DigestNode:
    """A node of a `Digest`: what it is of, its SHA-256, and the nodes below it.

    Two nodes are equal if their digests are.

    Attributes
    ----------
    kind : str
        ``table``, ``tensor``, ``metadata``, ``row``, ``file`` or ``row group``.
    name : str
        The table's place, the tensor's id, the file's path, the row group's number, or the row's box.
    hex : str
        The digest in hexadecimal, 64 characters.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        digest: bytes,
        below: Callable[[], Sequence[DigestNode]] = tuple,
    ) -> None:
        self.kind, self.name, self.hex = kind, name, digest.hex()
        self._below = below

    @cached_property
    def children(self) -> tuple[DigestNode, ...]:
        """The nodes below this one: tensors of a table; metadata and rows of a tensor; row groups of a file."""
        return tuple(self._below())

    def walk(self) -> Iterator[DigestNode]:
        """Yield this node and all below it, each before its children."""
        yield self
        for child in self.children:
            yield from child.walk()

    def __eq__(self, other: object) -> bool:
        return self.hex == other.hex if isinstance(other, DigestNode) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.hex)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.kind} {self.name}: {self.hex}>"


class StoredRow(NamedTuple):
    """A data row of a tensor, and where it lies.

    Attributes
    ----------
    path, group, seq : str, int, int
        The data file, the row group, and the row's place in the tensor's storage order.
    lo, hi : tuple of int
        Its box, on the axes that have columns.
    digest : bytes
        Of what it holds.
    """

    path: str
    group: int
    seq: int
    lo: tuple[int, ...]
    hi: tuple[int, ...]
    digest: bytes

    @property
    def box(self) -> str:
        """The box as it is typed in a slice."""
        return box_text(np.array(self.lo, np.int64), np.array(self.hi, np.int64))


class Digest(DigestNode):
    """The digest of a table or of a tensor, as `TensorLake.digest` returns it.

    It says what the rows hold, not where they lie: `TensorLake.optimize` does not change it, and one element that
    changes does. The children of a table are its tensors, those of a tensor its metadata and its rows. `files` are the
    same rows as they lie in data files.

    Attributes
    ----------
    uri, version : str, int
        The table that it was made of.
    table_id : str
        What Delta calls the table.
    hashed : int
        Bytes of the data files that were read for it; those of the others were known. 0 of one that was loaded.
    """

    def __init__(
        self,
        leaves: pa.Table,
        tensor_id: str | None,
        uri: str,
        version: int,
        table_id: str,
        hashed: int = 0,
    ) -> None:
        self._leaves = leaves
        self._rows = _Rows(leaves)
        self.uri, self.version, self.table_id, self.hashed = uri, version, table_id, hashed
        self._tensor_id = tensor_id
        if tensor_id is None:
            digest = node_digest(TABLE, [self._rows.tensors[name] for name in self.ids])
            super().__init__("table", uri, digest, self._tensors)
        else:
            digest = self._rows.tensors[tensor_id]
            super().__init__("tensor", tensor_id, digest, partial(self._rows.nodes, tensor_id))

    @classmethod
    def of(
        cls, leaves: pa.Table, snapshot: Snapshot, tensor_id: str | None = None, hashed: int = 0
    ) -> Digest:
        """Return the digest that live rows of a version make up, or those of one tensor among them."""
        if tensor_id is not None:
            leaves = leaves.filter(pc.equal(leaves["id"], tensor_id))
        uri, version = snapshot.storage.uri, snapshot.version
        return cls(leaves, tensor_id, uri, version, snapshot.table_id, hashed)

    def _tensors(self) -> list[Digest]:
        return [self[name] for name in self.ids]

    @property
    def ids(self) -> list[str]:
        """The ids of the tensors in it, sorted."""
        return sorted(self._rows.tensors)

    def __contains__(self, tensor_id: object) -> bool:
        return tensor_id in self._rows.tensors

    def __iter__(self) -> Iterator[str]:
        """Yield `ids`; without this, Python would ask for tensors 0, 1, and so on."""
        return iter(self.ids)

    def __getitem__(self, tensor_id: str) -> Digest:
        """Return the digest of one tensor.

        Raises
        ------
        TensorNotFoundError
            If it has no such tensor.
        """
        if tensor_id not in self:
            hint = did_you_mean(str(tensor_id), self.ids)
            of = "the table" if self._tensor_id is None else f"tensor {self._tensor_id!r} alone"
            raise TensorNotFoundError(
                f"the digest has no tensor {tensor_id!r}{hint}; it is of {of}, in version {self.version}"
            )
        if tensor_id == self._tensor_id:
            return self
        rows = self._leaves.take(pa.array(self._rows.places[tensor_id]))
        return Digest(rows, tensor_id, self.uri, self.version, self.table_id)

    @cached_property
    def files(self) -> tuple[DigestNode, ...]:
        """The data files with its rows, by path: each has row groups, and these have rows.

        The digest of a file or of a row group is that of its rows in their order. It says nothing of its path.
        """
        return tuple(self._rows.files())

    @property
    def metadata(self) -> DigestNode | None:
        """The node of a tensor's metadata, None if it has none."""
        return next((node for node in self.children if node.kind == "metadata"), None)

    @cached_property
    def rows(self) -> tuple[StoredRow, ...]:
        """The data rows in it, by file as they lie."""
        return tuple(self._rows.stored())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the digest to a file, for `Digest.load`, with the digests of all rows.

        It holds no values of elements. A file that is there stays until the new one is complete.

        Raises
        ------
        InvalidOptionError
            If `path` is no path.
        StorageError
            If the file cannot be written, as on a full disk.
        """
        path = _path_of(path)
        about = {
            "table": self.table_id, "uri": self.uri, "version": str(self.version),
            **({} if self._tensor_id is None else {"tensor": self._tensor_id}),
        }  # fmt: skip
        data = digest_file.pack(self._leaves, about)
        try:
            put_file(os.path.realpath(path), data)  # of a link, what it leads to
        except OSError as error:
            raise storage_error(
                f"the digest cannot be written to {path}: {error.strerror}; name a file in a folder that is there, has "
                "space left, and may be written",
                error,
            ) from error

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Digest:
        """Return the digest that `save` wrote; all above the rows is computed anew.

        Raises
        ------
        InvalidOptionError
            If the file is not there, is no digest, or is of a later format.
        CorruptDataError
            If it was changed since.
        """
        path = _path_of(path)
        try:
            with open(path, "rb") as file:
                leaves, about = digest_file.unpack(file.read())
            tensor_id = about.get("tensor")
            return cls(leaves, tensor_id, about["uri"], int(about["version"]), about["table"])
        except OSError as error:
            raise InvalidOptionError(
                f"the digest {path} cannot be read: {error.strerror}"
            ) from error
        except LaterFormat as error:
            raise InvalidOptionError(
                f"the digest {path} has a later format; use a newer version of tensorlake_spark"
            ) from error
        except (ValueError, LookupError, pa.ArrowException) as error:
            raise CorruptDataError(
                f"{path} is not a digest, or was changed since it was saved: {error}; take a copy that "
                "was not"
            ) from error


class _Rows:
    """Digests of rows, put in order: by tensor, and in it metadata first and then rows as the tensor counts them.

    Attributes
    ----------
    tensors : dict of str to bytes
        The digest of each tensor.
    places : dict of str to int64 ndarray
        For each tensor which rows are its.
    """

    def __init__(self, leaves: pa.Table) -> None:
        self._leaves = leaves = leaves.combine_chunks()
        count = leaves.num_rows
        self.digests = _fixed(leaves["digest"], count)
        self._kind = leaves["kind"].to_numpy()
        self._seq = leaves["seq"].to_numpy()
        self.tensors: dict[str, bytes] = {}
        self.places: dict[str, Array] = {}
        self._order: dict[str, Array] = {}
        self._meta: dict[str, int | None] = {}
        if count:
            self._part()

    def _part(self) -> None:
        ids = _array(self._leaves["id"]).dictionary_encode()
        codes = ids.indices.to_numpy()
        order = np.lexsort((self.digests, codes))
        data = self._kind == digest_file.DATA
        bounds = np.searchsorted(codes[order], np.arange(len(ids.dictionary) + 1))
        rows = order[data[order]]  # by tensor, then by digest
        row_bounds = np.searchsorted(codes[rows], np.arange(len(ids.dictionary) + 1))
        blob = self.digests[rows].tobytes()
        metas = np.flatnonzero(~data)
        newest = {}
        for place in metas[np.argsort(self._seq[metas], kind="stable")].tolist():
            newest[int(codes[place])] = place
        for code, name in enumerate(ids.dictionary.to_pylist()):
            first, stop = row_bounds[code], row_bounds[code + 1]
            meta = newest.get(code)
            chosen, part = rows[first:stop], blob[first * SIZE : stop * SIZE]
            if meta is not None and self._kind[meta] == digest_file.ORDERED:
                chosen = chosen[np.argsort(self._seq[chosen], kind="stable")]
                part = self.digests[chosen].tobytes()
            head = NO_METADATA if meta is None else self._bytes(meta)
            self.tensors[name] = node_digest(TENSOR, [head, part])
            self.places[name] = np.sort(order[bounds[code] : bounds[code + 1]])
            self._order[name], self._meta[name] = chosen, meta

    def _bytes(self, place: int) -> bytes:
        return self.digests[place : place + 1].tobytes()

    def _node(self, place: int) -> DigestNode:
        if self._kind[place] != digest_file.DATA:
            return DigestNode("metadata", self._leaves["id"][place].as_py(), self._bytes(place))
        lo, hi = (np.array(self._leaves[name][place].as_py(), np.int64) for name in ("lo", "hi"))
        return DigestNode("row", box_text(lo, hi), self._bytes(place))

    def stored(self) -> Iterator[StoredRow]:
        """Yield all data rows."""
        rows = self._leaves.filter(pa.array(self._kind == digest_file.DATA))
        names = ("path", "group", "seq", "lo", "hi", "digest")
        for path, group, seq, lo, hi, digest in zip(
            *(rows[name].to_pylist() for name in names), strict=True
        ):
            yield StoredRow(path, group, seq, tuple(lo), tuple(hi), digest)

    def nodes(self, tensor_id: str) -> list[DigestNode]:
        """Return the nodes of a tensor: its metadata, and its rows in the order in which they count."""
        meta = self._meta[tensor_id]
        rows = self._order[tensor_id].tolist()
        return self._nodes(([] if meta is None else [meta]) + rows)

    def files(self) -> Iterator[DigestNode]:
        """Yield the nodes of files, by path."""
        paths = _array(self._leaves["path"]).dictionary_encode()
        codes, groups = paths.indices.to_numpy(), self._leaves["group"].to_numpy()
        names = paths.dictionary.to_pylist()
        for code in sorted(range(len(names)), key=names.__getitem__):
            rows = np.flatnonzero(codes == code)
            cuts = np.flatnonzero(np.diff(groups[rows])) + 1
            nodes = [self._group(int(groups[some[0]]), some) for some in np.split(rows, cuts)]
            digest = node_digest(FILE, [bytes.fromhex(node.hex) for node in nodes])
            yield DigestNode("file", names[code], digest, partial(list, nodes))

    def _group(self, number: int, rows: Array) -> DigestNode:
        digest = node_digest(ROW_GROUP, [self.digests[rows].tobytes()])
        return DigestNode("row group", str(number), digest, partial(self._nodes, rows.tolist()))

    def _nodes(self, places: Sequence[int]) -> list[DigestNode]:
        return [self._node(place) for place in places]


def _path_of(path: Any) -> str:
    """Return a path as text. `open` takes a number for an open file, and closes it: 1 is the standard output."""
    try:
        text = os.fsdecode(path)
        if b"\0" not in os.fsencode(text):
            return text
    except (TypeError, UnicodeEncodeError):
        pass
    raise InvalidOptionError(f"path={path!r:.80} is no path of a file")


def _array(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found


def _fixed(column: pa.ChunkedArray, count: int) -> Array:
    """Return digests as an array of NumPy, which compares them as bytes."""
    found = _array(column)
    start = found.offset * SIZE
    data = memoryview(found.buffers()[1] or b"")[start : start + count * SIZE]
    return np.frombuffer(data, f"S{SIZE}")
