"""Check of a dataset: files, samples, values and parts held against each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.audit import check as lake_check
from tensorlake_spark.audit.check import CheckReport, Finding, in_short, left_over, of_log
from tensorlake_spark.datasets.apart.inner_tables import (
    TENSORS_FOLDER,
    folder_of,
    inner_storage,
    inner_tables,
    stored_names,
    tensor_id,
)
from tensorlake_spark.datasets.maintenance.inner_versions import parts_left
from tensorlake_spark.datasets.maintenance.value_check import tiled_samples, value_faults
from tensorlake_spark.datasets.samples.appending import next_sid
from tensorlake_spark.datasets.types.base import Tiled, Type, is_valid
from tensorlake_spark.datasets.types.schema import SampleSchema, column_of
from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.files.inspection import Inspection
from tensorlake_spark.delta.files.runner import Run, run_here
from tensorlake_spark.delta.log.requirements import SAMPLES, SID, TENSORS
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.sample_inspection import inspect_samples
from tensorlake_spark.delta.samples.sample_writer import SORTED
from tensorlake_spark.errors import CorruptDataError, TensorLakeError, TensorNotFoundError
from tensorlake_spark.lake.ref import TensorRef

Array = np.ndarray[Any, Any]

_RESTORE = "ds.restore(version) brings an earlier version back"
_UNORDERED = (
    "its name says that samples lie in the order of their sids, and they do not, so that reads may miss them; write it "
    "anew with Delta: UPDATE delta.`FOLDER` SET sid = sid"
)
_UNSEEN = (
    "its row has a value, which the dataset does not show, because the column is kept in a table of its own: "
    "somebody's plain Delta write; write the value with ds.update, and set the column to null there with Delta"
)
_VALUE = f"write the sample again with ds.update, or {_RESTORE}"


@dataclass(slots=True)
class Look:
    """What one data file has shown.

    Attributes
    ----------
    inspection : Inspection
        Of the file.
    sids : int64 ndarray
        The numbers of its samples that have one.
    unnumbered : int
        How many have none.
    faults : list of (int or None, str, str)
        Values that are wrong: sid, column, and why.
    tiled : list of (int, str, Tiled)
        Samples whose elements lie elsewhere: sid, column, and what their row says.
    unseen : list of (int, str)
        Values of apart columns that are in the samples' own rows, where nobody reads them: sid and column.
    absent : int64 ndarray
        Of an apart column the samples that have a row and no value.
    """

    inspection: Inspection
    sids: Array
    unnumbered: int = 0
    faults: list[tuple[int | None, str, str]] = field(default_factory=list)
    tiled: list[tuple[int, str, Tiled]] = field(default_factory=list)
    unseen: list[tuple[int, str]] = field(default_factory=list)
    absent: Array = field(default_factory=lambda: np.zeros(0, np.int64))


def check(snapshot: Snapshot, deep: bool = False, run: Run = run_here) -> CheckReport:
    """Check a version of a dataset; see `MaintenanceMethods.check`. `run` reads its files."""
    schema = SampleSchema.from_arrow(snapshot.schema)
    kinds = {name: kind for name, kind in schema.items() if not kind.apart}
    apart = [name for name, kind in schema.items() if kind.apart]
    looks = _looks(snapshot, kinds, deep, run, apart)
    sids = np.concatenate([np.zeros(0, np.int64), *(look.sids for look in looks)])
    findings = _of_files(looks, "") + _of_numbers(snapshot, looks, sids)
    parts = _Parts(snapshot, schema, np.unique(sids), deep, run)
    findings += parts.check([tiled for look in looks for tiled in look.tiled])
    findings += parts_left(snapshot)
    findings += of_log(snapshot) + left_over(snapshot, "ds.vacuum()")
    inspected = [*looks, *parts.looks]
    return CheckReport(
        snapshot.storage.uri,
        snapshot.version,
        len(inspected) + parts.files,
        sum(look.inspection.rows for look in inspected) + parts.rows,
        sum(look.inspection.nbytes for look in inspected) + parts.nbytes,
        parts.tensors,
        in_short(findings),
        len(sids) + sum(look.unnumbered for look in looks),
    )


def _looks(
    snapshot: Snapshot, kinds: dict[str, Type], deep: bool, run: Run, apart: Sequence[str] = ()
) -> list[Look]:
    snapshot.kept("")  # deletion vectors are read before threads ask
    paths = snapshot.files.path
    work = partial(_look_at, snapshot, kinds, deep, apart)
    return [look for _, look in run(work, paths, snapshot.files.size.tolist())]


def _look_at(
    snapshot: Snapshot, kinds: dict[str, Type], deep: bool, apart: Sequence[str], path: str
) -> Look:
    out = Look(Inspection(path), np.zeros(0, np.int64))
    numbers = [out.sids]

    def visit(rows: pa.Table) -> None:
        column = rows.column(SID).combine_chunks()
        there = is_valid(column)
        sids = column.fill_null(-1).to_numpy()
        numbers.append(sids[there])
        out.unnumbered += int((~there).sum())
        for name, kind in kinds.items():
            array = column_of(rows, name)
            array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
            for row, text in value_faults(kind, array, deep):
                out.faults.append((int(sids[row]) if there[row] else None, name, text))
            tiled = tiled_samples(kind, array)
            out.tiled += [(int(sids[row]), name, said) for row, said in tiled]
        for name in apart:
            for row in np.flatnonzero(_valid(column_of(rows, name)) & there).tolist():
                out.unseen.append((int(sids[row]), name))

    out.inspection = inspect_samples(snapshot, path, visit)
    out.sids = np.concatenate(numbers)
    return out


def _valid(column: pa.Array | pa.ChunkedArray) -> Array:
    return is_valid(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)


def _of_files(looks: Sequence[Look], folder: str) -> list[Finding]:
    """Return what is wrong with files and the values in them."""
    out = []
    for look in looks:
        path = f"{folder}{look.inspection.path}"
        for fault in look.inspection.faults:
            out.append(Finding(fault.kind, path, f"{fault.text}; {_RESTORE}"))
        if look.inspection.path.startswith(SORTED) and (np.diff(look.sids) <= 0).any():
            out.append(Finding("order", path, _UNORDERED))
        for sid, column, text in look.faults:
            place = f"column {column!r}, sample {'without a sid' if sid is None else sid}"
            out.append(Finding("value", place, f"{text}; {_VALUE} ({path})"))
        for sid, column in look.unseen:
            out.append(Finding("apart", f"column {column!r}, sample {sid}", f"{_UNSEEN} ({path})"))
    return out


def _of_numbers(snapshot: Snapshot, looks: Sequence[Look], sids: Array) -> list[Finding]:
    """Return what is wrong with the numbers of samples."""
    out = []
    for look in looks:
        if look.unnumbered:
            text = (
                f"{look.unnumbered} samples have no sid, so nothing names them: somebody's plain Delta write; delete "
                "them with Delta, and add them with ds.extend"
            )
            out.append(Finding("sid", look.inspection.path, text))
    found, counts = np.unique(sids, return_counts=True)
    for sid in found[counts > 1].tolist():
        text = f"{counts[np.searchsorted(found, sid)]} samples have this sid; delete all but one with Delta"
        out.append(Finding("sid", f"sid {sid}", text))
    try:
        counter = next_sid(snapshot)
    except CorruptDataError as error:
        return [*out, Finding("sid", "the next sid", str(error))]
    for sid in found[(found < 0) | (found >= counter)].tolist():
        text = (
            f"it was not given by the dataset, whose next one is {counter}, and may be given again; give the sample "
            "another number: add it with ds.extend, and delete this one"
        )
        out.append(Finding("sid", f"sid {sid}", text))
    return out


class _Parts:
    """The tables inside a dataset, at the versions that belong to its own."""

    def __init__(
        self, snapshot: Snapshot, schema: SampleSchema, sids: Array, deep: bool, run: Run
    ) -> None:
        self.snapshot, self.schema, self.sids, self.deep, self.run = (
            snapshot, schema, sids, deep, run,
        )  # fmt: skip
        self.names = stored_names(snapshot.schema)
        self.looks: list[Look] = []
        self.files = self.rows = self.nbytes = self.tensors = 0

    def check(self, tiled: Sequence[tuple[int, str, Tiled]]) -> list[Finding]:
        """Check all of them, and that each sample that is said to be tiled is."""
        out: list[Finding] = []
        opened: dict[str, Snapshot] = {}
        for folder, version in inner_tables(self.snapshot).items():
            kind = TENSORS if folder == TENSORS_FOLDER else SAMPLES
            storage = inner_storage(self.snapshot.storage, folder)
            try:
                opened[folder] = Snapshot.open(storage, version, kind=kind)
            except TensorLakeError as error:
                text = f"the dataset needs version {version} of this folder: {error}; {_RESTORE}"
                out.append(Finding("pin", folder, text))
        for name, kind_ in self.schema.items():
            if kind_.apart:
                out += self._column(name, kind_, opened.get(folder_of(self.names[name])))
        lake = opened.get(TENSORS_FOLDER)
        if lake is not None:
            out += self._lake(lake)
        return out + self._tiles(lake, tiled)

    def _column(self, name: str, kind: Type, inner: Snapshot | None) -> list[Finding]:
        out: list[Finding] = []
        there = np.zeros(0, np.int64)
        if inner is not None:
            folder = folder_of(self.names[name])
            (inside,) = SampleSchema.from_arrow(inner.schema).items()
            looks = _looks(inner, {inside[0]: inside[1]}, self.deep, self.run)
            self.looks += looks
            for look in looks:
                look.faults = [(sid, name, text) for sid, _, text in look.faults]
            out += _of_files(looks, f"{folder}/")
            rows = np.concatenate([there, *(look.sids for look in looks)])
            there, counts = np.unique(rows, return_counts=True)
            for sid in there[counts > 1].tolist():
                text = f"it has more than one row in {folder}; {_VALUE}"
                out.append(Finding("apart", f"column {name!r}, sample {sid}", text))
            if not all(look.inspection.is_read for look in looks):
                return out
        if not kind.nullable:
            for sid in np.setdiff1d(self.sids, there).tolist():
                text = f"it has no value, and the column is not nullable; {_VALUE}"
                out.append(Finding("apart", f"column {name!r}, sample {sid}", text))
        return out

    def _lake(self, lake: Snapshot) -> list[Finding]:
        report = lake_check.check(lake, None, False, self.run)
        self.files, self.rows, self.nbytes = report.files, report.rows, report.nbytes
        self.tensors = report.tensors
        return [
            Finding(one.kind, f"{TENSORS_FOLDER}: {one.place}", one.text)
            for one in report.findings
            if not one.is_notice
        ]

    def _tiles(
        self, lake: Snapshot | None, tiled: Sequence[tuple[int, str, Tiled]]
    ) -> list[Finding]:
        out = []
        for sid, column, said in tiled:
            place = f"column {column!r}, sample {sid}"
            name = tensor_id(self.names[column], sid)
            try:
                if lake is None:
                    raise TensorNotFoundError(name)
                ref = TensorRef(lake, catalog.get(lake, name))
            except TensorNotFoundError:
                text = f"it is kept as tiles, and {TENSORS_FOLDER} has no tensor {name!r}; {_VALUE}"
                out.append(Finding("tiles", place, text))
                continue
            if ref.shape != tuple(said.shape) or ref.dtype.name != said.dtype:
                text = (
                    f"it is {said.dtype} of shape {said.shape} by its row, and its tiles are {ref.dtype.name} of shape "
                    f"{ref.shape}; {_VALUE}"
                )
                out.append(Finding("tiles", place, text))
        return out
