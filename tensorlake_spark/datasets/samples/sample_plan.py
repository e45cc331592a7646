"""What a read of samples will touch: files, row groups and bytes, known without reading a sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorlake_spark.datasets.samples.sample_reading import parts_of
from tensorlake_spark.indexing.read_plan import FilePlan, size_text

if TYPE_CHECKING:
    from tensorlake_spark.datasets.samples.dataset_table import DatasetTable


@dataclass(frozen=True)
class SamplePlan:
    """What is read of a dataset.

    Attributes
    ----------
    uri : str
        The dataset.
    version : int, or None
        Its version.
    where : str, or None
        The condition.
    columns : tuple of str
        The columns that are wanted.
    files : tuple of FilePlan
        What is read of each file: row groups that may have such samples, and the bytes there of the columns that are
        wanted, and of those that the condition asks.
    total_files, total_samples, total_bytes : int
        Data files of the version, their samples, and their bytes in all columns.

    Examples
    --------
    >>> plan = SamplePlan("ds", 3, "size > 5", ("size",), (FilePlan("a", (0,), 2, 10, 4, 8, 40),), 2, 16, 80)
    >>> plan.n_files, plan.n_row_groups, plan.n_samples, plan.n_bytes
    (1, 1, 2, 10)
    """

    uri: str
    version: int | None
    where: str | None
    columns: tuple[str, ...]
    files: tuple[FilePlan, ...]
    total_files: int
    total_samples: int
    total_bytes: int

    @property
    def n_files(self) -> int:
        """Files that are opened."""
        return len(self.files)

    @property
    def n_row_groups(self) -> int:
        """Row groups that are read."""
        return sum(len(file.row_groups) for file in self.files)

    @property
    def n_samples(self) -> int:
        """Samples of these row groups."""
        return sum(file.rows for file in self.files)

    @property
    def n_bytes(self) -> int:
        """Bytes that are read of these row groups."""
        return sum(file.bytes for file in self.files)

    def __str__(self) -> str:
        groups = sum(file.total_row_groups for file in self.files)
        less = max(0, self.total_bytes - self.n_bytes)
        lines = [
            f"dataset    {self.uri}, version {self.version}",
            f"columns    {', '.join(self.columns)}",
            *([f"where      {self.where}"] if self.where is not None else []),
            f"files      {self.n_files} read, {self.total_files - self.n_files} skipped of {self.total_files}",
            f"row groups {self.n_row_groups} read, {groups - self.n_row_groups} skipped of {groups} in these files",
            f"samples    {self.n_samples} looked at, {self.total_samples - self.n_samples} skipped of "
            f"{self.total_samples}",
            f"bytes      {size_text(self.n_bytes)} read, {size_text(less)} skipped of {size_text(self.total_bytes)}",
        ]
        return "\n".join(lines)


def plan(table: DatasetTable, where: str | None, columns: list[str]) -> SamplePlan:
    """Return what a read of some columns of samples will touch.

    Parameters
    ----------
    table : DatasetTable
        The dataset.
    where : str, or None
        A condition on the samples.
    columns : list of str
        Names of columns.
    """
    condition = None if where is None else table.parsed(where)
    if table.version is None:
        return SamplePlan(table.uri, None, where, tuple(columns), (), 0, 0, 0)
    stored = table.stored
    wanted = [parts_of(name) for name in columns]
    if condition is None:
        near = [(n, [*range(file.metadata.num_row_groups)]) for n, file in enumerate(stored.files)]
    else:
        wanted += condition.needed
        near = list(stored.near(condition.loose, condition.needed, condition.ordered))
    leaves = [leaf.path for leaf in stored.under(wanted)]
    live = stored.snapshot.files
    size = dict(zip(live.path, live.size.tolist(), strict=True))
    files = []
    for number, groups in near:
        file = stored.files[number]
        rows = sum(int(file.starts[group + 1] - file.starts[group]) for group in groups)
        files.append(
            FilePlan(
                file.path,
                tuple(groups),
                rows,
                file.bytes_of(groups, leaves),
                file.metadata.num_row_groups,
                int(file.starts[-1]),
                size[file.path],
            )
        )
    return SamplePlan(
        table.uri, table.version, where, tuple(columns), tuple(files),
        len(stored.files), len(stored), sum(size.values()),
    )  # fmt: skip
