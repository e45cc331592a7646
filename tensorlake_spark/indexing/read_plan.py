"""What a read will touch: the value that planning makes, reading executes, and `explain` prints."""

from __future__ import annotations

from dataclasses import dataclass

from tensorlake_spark.indexing.mixed_selection import AnySelection
from tensorlake_spark.indexing.predicate import Predicate


@dataclass(frozen=True, slots=True)
class FilePlan:
    """What is read of one data file.

    Attributes
    ----------
    path : str
        Path in the table.
    row_groups : tuple of int
        Row groups that may hold wanted rows.
    rows, bytes : int
        Rows of these groups, and their size in bytes.
    total_row_groups, total_rows, total_bytes : int
        The same of the whole file.
    """

    path: str
    row_groups: tuple[int, ...]
    rows: int
    bytes: int
    total_row_groups: int
    total_rows: int
    total_bytes: int


@dataclass(frozen=True)
class ReadPlan:
    """What a slice reads from storage, and what is cut from it afterwards.

    Attributes
    ----------
    predicate : Predicate
        The condition on rows. It may let through too many rows, never too few.
    selection : Selection, PointSelection or MixedSelection
        What the decoder keeps: exactly the slice.
    files : tuple of FilePlan
        What is read.
    total_files, total_bytes : int
        Files of the version of the table that may hold this tensor, and their size in bytes.
    version : int
        Version of the table.
    stored : str
        How rows lie in the tensor, and so what slices skip. Empty if it was not asked for.

    Examples
    --------
    >>> from tensorlake_spark.indexing import select
    >>> k = select(slice(0, 2), (8,))
    >>> plan = ReadPlan(Predicate.of("x", k), k, (FilePlan("a", (0,), 2, 10, 4, 8, 40),), 1, 40, 3)
    >>> plan.n_rows, plan.n_bytes
    (2, 10)
    """

    predicate: Predicate
    selection: AnySelection
    files: tuple[FilePlan, ...]
    total_files: int
    total_bytes: int
    version: int = 0
    stored: str = ""

    @property
    def n_files(self) -> int:
        """Files that are opened."""
        return len(self.files)

    @property
    def n_row_groups(self) -> int:
        """Row groups that are read."""
        return sum(len(f.row_groups) for f in self.files)

    @property
    def n_rows(self) -> int:
        """Rows of these row groups."""
        return sum(f.rows for f in self.files)

    @property
    def n_bytes(self) -> int:
        """Bytes of these row groups."""
        return sum(f.bytes for f in self.files)

    def __str__(self) -> str:
        groups = sum(f.total_row_groups for f in self.files)
        rows = sum(f.total_rows for f in self.files)
        lines = [
            f"tensor     {self.predicate.id}, version {self.version}, shape {self.selection.shape}",
            *([f"stored     {self.stored}"] if self.stored else []),
            f"result     {self.selection.result_shape}",
            f"predicate  {self.predicate.to_sql()}",
            f"files      {self.n_files} read, {self.total_files - self.n_files} skipped of {self.total_files}",
            f"row groups {self.n_row_groups} read, {groups - self.n_row_groups} skipped of {groups} in these files",
            f"rows       {self.n_rows} read, {rows - self.n_rows} skipped of {rows} in these files",
            f"bytes      {size_text(self.n_bytes)} read, "
            f"{size_text(max(0, self.total_bytes - self.n_bytes))} skipped",
        ]
        return "\n".join(lines)


def size_text(count: int) -> str:
    """Return a number of bytes for people.

    Examples
    --------
    >>> size_text(0), size_text(2048), size_text(5 << 20)
    ('0 B', '2.0 KiB', '5.0 MiB')
    """
    if count < 1024:
        return f"{count} B"
    value = float(count)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        value /= 1024
        if value < 1024 or unit == "TiB":
            break
    return f"{value:.1f} {unit}"
