"""Where two digests differ: the first row of each tensor, with the file and the row group that hold it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tensorlake_spark.audit.digest import Digest, StoredRow
from tensorlake_spark.errors import InvalidOptionError

_HEX = re.compile(r"[0-9a-fA-F]{64}")


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which a table differs from a digest of it: the place, and a sentence."""

    place: str
    text: str


def check_digest(digest: Digest | str, ids: Sequence[str] | None) -> None:
    """Raise if a digest is none, or cannot be compared with some tensors."""
    if isinstance(digest, Digest):
        for tensor_id in ids or ():
            if tensor_id not in digest:
                digest[tensor_id]  # which raises
        return
    if not isinstance(digest, str) or not _HEX.fullmatch(digest):
        raise InvalidOptionError(
            f"digest {digest!r:.100} is not a digest; give what lake.digest() returned, what Digest.load(path) "
            "returns, or 64 hexadecimal digits"
        )
    if ids is not None and len(ids) != 1:
        raise InvalidOptionError(
            f"the hexadecimal digest is of one tensor, or of the table, not of {len(ids)} tensors; give the saved "
            "digest, which has all of them, or one id"
        )


def differences(
    expected: Digest | str, found: Digest, ids: Sequence[str] | None
) -> Iterator[Difference]:
    """Yield in what a table differs from a digest that was made before.

    Parameters
    ----------
    expected : Digest or str
        What it should be: of the table or a tensor; or only the digest in hexadecimal.
    found : Digest
        What its rows say now: of the table.
    ids : sequence of str, optional
        Only these tensors.
    """
    if isinstance(expected, str):
        yield from _of_hex(expected, found, ids)
        return
    if ids is None and expected.kind == "tensor":
        ids = [expected.name]
    if ids is None and expected == found:
        return
    names = sorted({*expected.ids, *found.ids}) if ids is None else ids
    note = ""
    if expected.table_id != found.table_id:
        note = f"; the digest is of another table, {expected.uri}"
    since = f"version {expected.version}"
    for name in names:
        if name not in found:
            yield Difference(f"tensor {name!r}", f"it is not there, and in {since} it was{note}")
        elif name not in expected:
            yield Difference(f"tensor {name!r}", f"it was not there in {since}{note}")
        elif expected[name] != found[name]:
            yield from _of_tensor(expected[name], found[name], since, note)


def _of_hex(expected: str, found: Digest, ids: Sequence[str] | None) -> Iterator[Difference]:
    place, now = "table", found.hex
    if ids is not None:
        place = f"tensor {ids[0]!r}"
        now = found[ids[0]].hex if ids[0] in found else "that of any tensor"
    if now != expected.lower():
        yield Difference(
            place,
            f"its digest is {now}, not {expected}; give the saved digest, as Digest.load returns it, to have the "
            "first row named",
        )


def _of_tensor(before: Digest, now: Digest, since: str, note: str) -> Iterator[Difference]:
    """Yield what differs in a tensor: its metadata, and the first row."""
    name = before.name
    said, says = before.metadata, now.metadata
    if said != says:
        what = "is not there" if says is None else f"is not that of {since}"
        yield Difference(f"tensor {name!r}, metadata", f"it {what}{note}")
    was, there = Counter(row.digest for row in before.rows), Counter(r.digest for r in now.rows)
    lost = {row.lo + row.hi: row for row in before.rows if there[row.digest] < was[row.digest]}
    new = {row.lo + row.hi: row for row in now.rows if was[row.digest] < there[row.digest]}
    boxes = sorted(lost.keys() | new.keys())
    if boxes:
        box = boxes[0]
        more = f", and {len(boxes) - 1} more boxes of this tensor differ" if boxes[1:] else ""
        if box in new and was[new[box].digest]:
            times = there[new[box].digest]
            place, text = (
                _place(name, new[box]),
                f"it is there {times} times, and in {since} it was not",
            )
        elif box in lost and box in new:
            place, text = _place(name, new[box]), f"it does not hold what it held in {since}"
        elif box in lost:
            place, text = _place(name, lost[box]), f"it is missing, and in {since} it was there"
        else:
            place, text = _place(name, new[box]), f"it was not there in {since}"
        yield Difference(place, f"{text}{more}{note}")
    elif said == says:
        yield Difference(f"tensor {name!r}", f"its rows are in another order than in {since}{note}")


def _place(name: str, row: StoredRow) -> str:
    return f"{row.path}, row group {row.group}, row {row.seq}: tensor {name!r}, box {row.box}"
