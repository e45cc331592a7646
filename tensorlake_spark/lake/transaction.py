"""Transaction: changes of many tensors in a ``with`` block, and one commit at its end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import Any

from tensorlake_spark.delta.log.commit import transaction_done
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import InvalidOptionError, TableNotFoundError
from tensorlake_spark.lake.changes import Changes
from tensorlake_spark.lake.ref import TensorRef
from tensorlake_spark.layouts import AnySelection, stored_layout
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.tensor.spec import check_id
from tensorlake_spark.upkeep.convert import convert_in
from tensorlake_spark.writing import write
from tensorlake_spark.writing.app_transaction import (
    check_there,
    check_transaction,
    instead_of,
    said_instead,
    tensors_of,
)
from tensorlake_spark.writing.editing.assignment import assign_to, assignment
from tensorlake_spark.writing.editing.sparse_assignment import element_assignment
from tensorlake_spark.writing.options import WriteOptions, check_mapping
from tensorlake_spark.writing.source import Source
from tensorlake_spark.writing.transaction_commit import commit_all, say_repeated
from tensorlake_spark.writing.uncommitted import Uncommitted

logger = logging.getLogger("tensorlake_spark")


class Transaction(Changes):
    """Changes of many tensors in one commit; made by `TensorLake.transaction`.

    Tensors that are read through it show what the block has written. Others show the version that was the
    newest when the block began. Small tensors share data files.

    Examples
    --------
    >>> import tempfile, numpy as np, tensorlake_spark as tl
    >>> lake = tl.open(tempfile.mkdtemp())
    >>> with lake.transaction() as tx:
    ...     ref = tx.write("x", np.arange(3))
    ...     ref[0] = 7
    ...     tx["x"][:].tolist(), list(lake)
    ([7, 1, 2], [])
    >>> lake["x"][:].tolist()
    [7, 1, 2]
    """

    def __init__(
        self,
        storage: Storage,
        verify: bool,
        transaction: tuple[str, int] | None,
        show: Callable[[Snapshot], Any],
    ) -> None:
        check_transaction(transaction)
        self._storage = storage
        self._verify = verify
        self._transaction = transaction
        self._show = show
        self._changes: Uncommitted | None = None
        self._has_begun = False
        self._version: int | None = None
        self._is_repeated = False

    def __enter__(self) -> Transaction:
        if self._has_begun:
            raise InvalidOptionError(
                "a transaction is for one with statement; begin another with lake.transaction()"
            )
        base: Snapshot | None = None
        try:
            base = Snapshot.newest(self._storage)
            base.check_writable()
            self._version = base.version
            self._is_repeated = transaction_done(base, self._transaction)
        except TableNotFoundError:
            pass
        if self._is_repeated:
            say_repeated(self._transaction)
        self._changes, self._has_begun = Uncommitted(self._storage, base), True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        changes, self._changes = self._now(), None
        if kind is not None:
            changes.discard()
            return
        has_changes = bool(changes.changed)
        done = commit_all(changes, self._transaction)
        if done is None:
            self._is_repeated |= has_changes  # another process was faster with the same batch
        else:
            self._version = done.version
            self._show(done)

    @property
    def version(self) -> int | None:
        """Version of the table: after the block the one that has the changes, before that the one it began with.

        None while there is no table.
        """
        return self._version

    @property
    def is_repeated(self) -> bool:
        """Whether the batch was committed before: then the block changes nothing."""
        return self._is_repeated

    def __getitem__(self, tensor_id: str) -> TensorRef:
        self._now().get(tensor_id)
        return _Ref(self, tensor_id)

    def __contains__(self, tensor_id: object) -> bool:
        return isinstance(tensor_id, str) and self._now().find(tensor_id) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._now().ids())

    def __len__(self) -> int:
        return len(self._now().ids())

    def update_attrs(self, tensor_id: str, attrs: Mapping[str, Any]) -> TensorRef:
        """Add or replace attributes of a tensor (JSON values), and return a reference to it.

        Raises
        ------
        TensorNotFoundError
            If there is no such tensor.
        InvalidOptionError
            If `attrs` is no mapping.
        InvalidTensorError
            If a value is not JSON.
        """
        return self[tensor_id].update_attrs(attrs)

    def __repr__(self) -> str:
        uri = self._storage.uri
        if self._changes is None:
            state = "has ended" if self._has_begun else "has not begun"
            return f"Transaction({uri!r}, {state})"
        return (
            f"Transaction({uri!r}, version={self._version}, changed={len(self._changes.changed)})"
        )

    def _now(self) -> Uncommitted:
        """Return the changes so far; raise InvalidOptionError outside of the block."""
        if self._changes is None:
            state = "has ended" if self._has_begun else "has not begun"
            remedy = (
                "open tensors with lake[id]" if self._has_begun else "use it in a with statement"
            )
            raise InvalidOptionError(
                f"this transaction on {self._storage.uri} {state}; {remedy}, or begin another with "
                "lake.transaction()"
            )
        return self._changes

    def _check_writable(self) -> None:
        self._now()

    def _write(
        self,
        tensor_id: str,
        source: Source,
        mode: str,
        axis: int | None,
        options: WriteOptions,
        done: Callable[[int], None],
    ) -> TensorRef:
        if options.transaction is not None:
            raise InvalidOptionError(
                f"transaction={options.transaction!r} is for a write of its own; the batch of a block is given to "
                "lake.transaction(transaction=...)"
            )
        changes = self._now()
        if self._is_repeated and changes.base is not None and self._transaction is not None:
            self._check_repeated(changes.base, self._transaction, tensor_id)
            return self[tensor_id]
        old = changes.find(check_id(tensor_id))
        view = changes.changing(old, tensor_id)
        write.write_to(view, tensor_id, old, source, mode, axis, options, done)
        return _Ref(self, tensor_id)

    def _check_repeated(self, base: Snapshot, batch: tuple[str, int], tensor_id: str) -> None:
        """Raise if a tensor of the repeated batch is not there; warn if the batch wrote others.

        A batch may have written the tensor and deleted it again, so that is no error.
        """
        check_there(base, batch, tensor_id)
        others = instead_of(tensor_id, self._repeated)
        if others:
            logger.warning("%s", said_instead(base, batch, tensor_id, others))

    @cached_property
    def _repeated(self) -> frozenset[str] | None:
        """The tensors that the repeated batch wrote, None where that is not known."""
        base, batch = self._now().base, self._transaction
        return None if base is None or batch is None else tensors_of(base, batch)

    def _convert(
        self, ref: TensorRef, options: WriteOptions, done: Callable[[int], None]
    ) -> TensorRef:
        if not self._is_repeated:
            meta = self._now().get(ref.id)
            view = self._now().changing(meta, ref.id)
            convert_in(view, meta, options, done, self._verify)
            self._now().carried.add(ref.id)
        return ref

    def _delete(self, tensor_id: str) -> None:
        if not self._is_repeated:
            write.delete_from(self._now().changing(None, tensor_id), tensor_id)

    def _assign(self, tensor_id: str, selection: AnySelection, values: Any) -> None:
        changes = self._now()
        meta = changes.get(tensor_id)
        is_sparse = stored_layout(meta.spec).is_sparse
        change = (element_assignment if is_sparse else assignment)(meta, selection, values)
        if not (self._is_repeated or selection.is_empty):
            assign_to(changes.changing(meta, tensor_id, rewrites=True), meta, change)

    def _describe(self, tensor_id: str, attrs: Mapping[str, Any]) -> None:
        changes = self._now()
        meta = changes.get(tensor_id)
        if not self._is_repeated:
            write.describe_in(
                changes.changing(meta, tensor_id),
                meta,
                lambda spec: replace(spec, attrs={**spec.attrs, **attrs}),
            )


class _Ref(TensorRef):
    """A tensor of a transaction, as it is whenever it is looked at."""

    def __init__(self, transaction: Transaction, tensor_id: str) -> None:
        self._transaction = transaction
        self._id = tensor_id
        self._verify = transaction._verify

    @property
    def _snapshot(self) -> Snapshot:
        return self._transaction._now().view(self._id)

    @_snapshot.setter
    def _snapshot(self, _: Snapshot) -> None:
        raise AttributeError("the transaction has it")

    @property
    def _meta(self) -> Meta:
        return self._transaction._now().get(self._id)

    @_meta.setter
    def _meta(self, _: Meta) -> None:
        raise AttributeError("the transaction has it")

    def update_attrs(self, attrs: Mapping[str, Any]) -> TensorRef:
        """Add or replace attributes (JSON values) and return the reference."""
        check_mapping("attrs", attrs)
        self._transaction._describe(self._id, attrs)
        return self

    def _assign(self, selection: AnySelection, values: Any) -> None:
        self._transaction._assign(self._id, selection, values)
