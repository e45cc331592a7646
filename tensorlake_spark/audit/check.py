"""Check: every file, row and total of a table held against each other, and what can be mended without a guess."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from tensorlake_spark.audit.check_tensor import DESCRIBED, Problem, Stock, check_tensor
from tensorlake_spark.audit.digest import Digest
from tensorlake_spark.audit.digest_difference import check_digest, differences
from tensorlake_spark.audit.hashing import distrust, leaves_of_rows
from tensorlake_spark.audit.inventory import Description, Part, RowFault, take_stock
from tensorlake_spark.audit.repair import count_anew, write_anew
from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.files.digest_file import LEAVES
from tensorlake_spark.delta.files.inspection import (
    MISSING,
    RECORDS,
    STATISTICS,
    Inspection,
    inspect_file,
)
from tensorlake_spark.delta.files.runner import Run, run_here
from tensorlake_spark.delta.files.table_folder import (
    LOG,
    empty_commits,
    everything,
    linked_folders,
    listing,
    named,
)
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store import staging
from tensorlake_spark.indexing.read_plan import size_text
from tensorlake_spark.layouts.coding.chain import UPGRADE

NOTICES = (DESCRIBED, "orphan", "source", "staging")
"""Kinds of findings that are no errors: other writers may be at work, or nothing is read by what is wrong."""

_SHOWN = 10  # findings of one kind in one place
_TAKE_OUT = (
    "put it back from a backup; or give up what it held, deltalake.DeltaTable(uri).repair() takes it out of the log, "
    "and check(repair=True) then counts the totals again"
)
_REORG = "it has a deletion vector: REORG TABLE ... APPLY (PURGE) of Spark writes it anew"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check found.

    Attributes
    ----------
    kind : str
        Of a commit ``log``; of a file ``missing``, ``file`` (it cannot be read), ``size``, ``records``,
        ``statistics``; ``row``; of a tensor ``metadata``, ``seq``, ``order``, ``totals``, ``overlap``, ``duplicate``,
        ``gap``; the notices ``described``, ``orphan`` and ``staging``; ``digest``, what differs from a digest. Of a
        dataset ``value``, ``sid``, ``pin``, ``apart``, ``tiles`` and ``lineage``, and the notice ``source``, see
        `Dataset.check`.
    place : str
        The file, or the tensor and the box.
    text : str
        What is wrong, and what could repair it.
    repaired : bool
        Whether this check repaired it.
    """

    kind: str
    place: str
    text: str
    repaired: bool = False

    @property
    def is_notice(self) -> bool:
        """Whether it is no error."""
        return self.kind in NOTICES

    def __str__(self) -> str:
        how = "repaired" if self.repaired else "notice" if self.is_notice else "ERROR"
        return f"{how} [{self.kind}] {self.place}: {self.text}"


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What `TensorLake.check` found.

    Attributes
    ----------
    uri : str
        Where the table is.
    version : int
        Version that was checked.
    files, rows, nbytes : int
        What was checked: data files, live rows, bytes of the files.
    tensors : int
        Tensors that have a row in them.
    findings : tuple of Finding
        Errors first.
    samples : int or None
        Of a dataset, how many samples it has; None of a lake.
    """

    uri: str
    version: int
    files: int
    rows: int
    nbytes: int
    tensors: int
    findings: tuple[Finding, ...]
    samples: int | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong, or all of it is repaired. Notices do not count."""
        return all(finding.repaired or finding.is_notice for finding in self.findings)

    def __str__(self) -> str:
        errors = sum(not (f.repaired or f.is_notice) for f in self.findings)
        state = "no error" if not errors else f"{errors} errors"
        what = f"{self.tensors} tensors"
        if self.samples is not None:
            what = f"{self.samples} samples" + (f" and {what}" if self.tensors else "")
        head = (
            f"{self.uri}, version {self.version}: {state} in {self.files} files, {self.rows} rows of "
            f"{what}, {size_text(self.nbytes)}"
        )
        return "\n".join([head, *map(str, self.findings)])


def check(
    snapshot: Snapshot,
    ids: Sequence[str] | None,
    repair: bool,
    run: Run = run_here,
    digest: Digest | str | None = None,
) -> CheckReport:
    """Check a version of a table; see `TensorLake.check`. `run` reads its files; what is mended, is mended here."""
    ids = None if ids is None else [*dict.fromkeys(ids)]  # one that is named twice is checked once
    if digest is not None:
        check_digest(digest, ids)
    hashed = digest is not None
    places = _files_of(snapshot, ids)
    looks = _look(snapshot, places, run, hashed)
    stocks = _stocks(looks)
    if ids is not None and repair and any(stocks[i].is_uncounted for i in ids if i in stocks):
        # Rows that wrong statistics hide are there: totals without them would make that a loss.
        rest = sorted(set(_files_of(snapshot, None)).difference(places))
        looks += [look for look in _look(snapshot, rest, run, hashed) if look.ids & {*ids}]
        stocks = _stocks(looks)
    if ids is not None:
        for tensor_id in ids:
            if tensor_id not in stocks and all(look.inspection.is_read for look in looks):
                catalog.get(snapshot, tensor_id)  # raises, with the nearest names
        stocks = {tensor_id: stock for tensor_id, stock in stocks.items() if tensor_id in ids}
    emptied = of_log(snapshot)
    # Totals without the rows of such a commit would make them a loss.
    findings = emptied + _Verdict(snapshot, looks, stocks).findings(repair and not emptied)
    if digest is not None:
        leaves = _leaves(looks)
        distrust(snapshot, _leaves(look for look in looks if look.is_sound))
        wrong = differences(digest, Digest.of(leaves, snapshot), ids)
        findings += [Finding("digest", each.place, each.text) for each in wrong]
    if ids is None:
        findings += left_over(snapshot)
    return CheckReport(
        snapshot.storage.uri,
        snapshot.version,
        len(looks),
        sum(look.inspection.rows for look in looks),
        sum(look.inspection.nbytes for look in looks),
        len(stocks),
        in_short(findings),
    )


def _files_of(snapshot: Snapshot, ids: Sequence[str] | None) -> list[int]:
    """Return the places of the files that may hold rows of some tensors, or of any."""
    files = snapshot.files
    if ids is None:
        return list(range(len(files.path)))
    held = [files.may_hold(i) for i in ids]
    return np.flatnonzero(np.any(held, axis=0)).tolist() if held else []


@dataclass(frozen=True, slots=True)
class _Look:
    """What one file has shown."""

    inspection: Inspection
    parts: dict[str, list[Part]]
    descriptions: list[Description]
    faults: list[RowFault]
    leaves: pa.Table

    @property
    def path(self) -> str:
        """Path of the file."""
        return self.inspection.path

    @property
    def ids(self) -> set[str]:
        """The tensors that have a row in it."""
        return {*self.parts, *(d.tensor_id for d in self.descriptions)}

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong with the file, and none of its rows."""
        return not self.faults and not self.inspection.faults


def _look(snapshot: Snapshot, places: Sequence[int], run: Run, hashed: bool) -> list[_Look]:
    """Read files, and return what each has shown; with the digests of its rows if they are asked for."""
    snapshot.kept("")  # deletion vectors are read before threads ask
    paths = [snapshot.files.path[place] for place in places]
    sizes = snapshot.files.size[list(places)].tolist()
    return [look for _, look in run(partial(_look_at, snapshot, hashed), paths, sizes)]


def _look_at(snapshot: Snapshot, hashed: bool, path: str) -> _Look:
    parts: dict[str, list[Part]] = {}
    descriptions: list[Description] = []
    faults: list[RowFault] = []
    leaves = [LEAVES.empty_table()]
    size = int(snapshot.files.size[snapshot.places[path]])

    def visit(group: int, batch: pa.RecordBatch) -> None:
        if hashed:
            leaves.append(leaves_of_rows(path, size, group, batch))
        found, described, wrong = take_stock(path, batch)
        for tensor_id, some in found.items():
            parts.setdefault(tensor_id, []).extend(some)
        descriptions.extend(described)
        faults.extend(wrong)

    inspection = inspect_file(snapshot, path, visit)
    return _Look(inspection, parts, descriptions, faults, pa.concat_tables(leaves))


def _leaves(looks: Iterable[_Look]) -> pa.Table:
    return pa.concat_tables([LEAVES.empty_table(), *(look.leaves for look in looks)])


def _stocks(looks: Sequence[_Look]) -> dict[str, Stock]:
    """Return what files have shown by tensor."""
    stocks: dict[str, Stock] = {}
    for look in looks:
        for tensor_id, parts in look.parts.items():
            stocks.setdefault(tensor_id, Stock()).parts.extend(parts)
        for description in look.descriptions:
            stocks.setdefault(description.tensor_id, Stock()).descriptions.append(description)
    return stocks


class _Verdict:
    """All that is wrong, and which of it can be mended."""

    def __init__(
        self, snapshot: Snapshot, looks: Sequence[_Look], stocks: dict[str, Stock]
    ) -> None:
        self.snapshot, self.looks, self.stocks = snapshot, looks, stocks
        self.damaged = {fault.tensor_id for look in looks for fault in look.faults}
        self.broken = {
            look.path
            for look in looks
            if not look.inspection.is_read
            or any(fault.kind == RECORDS for fault in look.inspection.faults)
        }
        self.problems = {
            name: check_tensor(snapshot, name, stocks[name], self.is_sound(name))
            for name in sorted(stocks)
        }

    def is_sound(self, tensor_id: str) -> bool:
        """Whether each row of a tensor is what was written, and each file that may hold one is read."""
        if tensor_id in self.damaged:
            return False
        if not self.broken:
            return True
        files = self.snapshot.files
        return all(files.path[i] not in self.broken for i in files.places_of(tensor_id).tolist())

    def findings(self, repair: bool) -> list[Finding]:
        """Return all of it, mended where that is asked for and needs no guess."""
        out = []
        for look in self.looks:
            mended = repair and self._is_mendable(look) and write_anew(self.snapshot, look.path)
            for fault in look.inspection.faults:
                text = fault.text
                if self.snapshot.kept(look.path) is not None and fault.kind in _OF_THE_LOG:
                    text += f"; {_REORG}"
                if fault.kind == MISSING:
                    text += f"; {_TAKE_OUT}"
                out.append(Finding(fault.kind, look.path, text, mended))
            for wrong in look.faults:
                place = f"tensor {wrong.tensor_id!r}, {wrong.place}"
                text = f"{wrong.text} ({wrong.path})"
                if not wrong.text.endswith(UPGRADE):
                    text += (
                        "; lake.restore(id, version) brings an earlier version of the tensor back"
                    )
                out.append(Finding("row", place, text))
        for tensor_id, problems in self.problems.items():
            stock = self.stocks[tensor_id]
            kinds = {problem.kind for problem in problems} - {DESCRIBED}
            counted = (
                repair
                and bool(kinds)
                and kinds <= _COUNTED
                and self.is_sound(tensor_id)
                and count_anew(self.snapshot, stock)
            )
            out += [
                Finding(p.kind, p.place, p.text, counted and p.kind in _COUNTED) for p in problems
            ]
        return out

    def _is_mendable(self, look: _Look) -> bool:
        """Whether only what is said of a file is wrong, and all that is in it is sure."""
        kinds = {fault.kind for fault in look.inspection.faults}
        if not kinds or not kinds <= _OF_THE_LOG or look.faults:
            return False
        if self.snapshot.kept(look.path) is not None:
            return False
        # Rows may have come or gone after the commit; where the totals of all tensors hold, none has.
        wrong = any(p.kind in _NOT_SURE for i in look.ids for p in self.problems.get(i, [_UNKNOWN]))
        return RECORDS not in kinds or not wrong


# Not the size: another file that is whole may lie in the place of this one.
_OF_THE_LOG = {RECORDS, STATISTICS}
_COUNTED = {"totals", "order", "gap"}
_NOT_SURE = {"totals", "seq", "order", "metadata"}
_UNKNOWN = Problem("metadata", "", "")


def of_log(snapshot: Snapshot) -> list[Finding]:
    """Return what is wrong with the commits of a table, which readers of Delta pass by."""
    emptied = empty_commits(everything(snapshot.storage, LOG))
    return [Finding("log", path, text) for path, text in emptied.items()]


def left_over(snapshot: Snapshot, vacuum: str = "lake.vacuum()") -> list[Finding]:
    """Return what lies in the folder and that no version names; `vacuum` is what deletes it."""
    files = listing(snapshot.storage)
    known = named(snapshot.storage, files)
    linked = linked_folders(snapshot.storage, files)  # what lies there is not the table's
    now = dt.datetime.now(dt.timezone.utc)
    out = []
    for file in files:
        if file.is_left and file.path not in known and not file.path.startswith(linked):
            hours = (now - file.modified).total_seconds() / 3600
            text = (
                f"{size_text(file.size)}, {hours:.1f} hours old: no version names it; a writer is at work or was "
                f"interrupted, {vacuum} deletes it when it is old enough"
            )
            out.append(Finding("orphan", file.path, text))
    for folder in staging.folders(snapshot.storage):
        text = f"notes of an ingestion that can be resumed; {vacuum} deletes them when they are old"
        out.append(Finding("staging", f"{staging.ROOT}/{folder}", text))
    return out


def in_short(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the first findings of each kind and place, and how many more there are; errors first."""

    def key(finding: Finding) -> tuple[str, str, bool]:
        # Rows of one tensor are one place, and so are samples of one column.
        place = finding.place.partition(", row ")[0].partition(", sample ")[0]
        return finding.kind, place, finding.repaired

    counts: Counter[tuple[str, str, bool]] = Counter()
    out = []
    for finding in findings:
        counts[key(finding)] += 1
        if counts[key(finding)] <= _SHOWN:
            out.append(finding)
    for (kind, place, repaired), count in counts.items():
        if count > _SHOWN:
            text = f"and {count - _SHOWN} more of this kind"
            out.append(Finding(kind, place, text, repaired))
    return tuple(sorted(out, key=lambda finding: finding.is_notice))
