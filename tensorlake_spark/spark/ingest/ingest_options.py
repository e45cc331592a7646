"""What an ingestion is told, checked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.spark.ingest.records.cell_options import CellOptions
from tensorlake_spark.spark.ingest.sources import has_channels
from tensorlake_spark.spark.source.source_options import check_values, transaction_of

HOW = ("stack", "concat", "each")
MODES = ("error", "overwrite", "append")


@dataclass(frozen=True)
class IngestOptions:
    """How files become tensors; see `tensorlake_spark.spark.ingest.ingestion.run`.

    Attributes
    ----------
    how : {"stack", "concat", "each"}, optional
        Arrays are stacked along a new first axis (what happens if nothing is said), concatenated along
        `axis`, or become one tensor a file.
    axis : int
        For ``"concat"``; an append continues there too.
    mode : {"error", "overwrite", "append"}
        What to do if a tensor is there.
    channels_first : bool
        Give colour images, also those of TIFF files, the axes (channel, y, x).
    cells : CellOptions
        For tables: what their columns are.
    options : mapping
        Further options of ``format("tensor")``. With ``txnAppId`` and ``txnVersion`` a batch that is in the
        table already changes nothing, and its files need not be there any more.
    storage_options : mapping
        As in `tensorlake_spark.open`, of the lake and of sources on S3; what they leave open is taken from the
        session's settings (``fs.s3a.*``), and then from the environment.
    dry_run : bool
        Look at the files and make the plan, and write nothing, not even a table.
    resume : bool
        Of arrays: if the run fails, keep what its tasks completed, and use what an earlier run of the same
        job kept. All of it becomes visible in one commit. Cells are written all or none, so the run begins
        anew unless its batch is there; an append of them needs the number of a batch for that.
    skip_bad : bool
        Leave out files that cannot be read, or do not go with the first good one. Those of arrays are read
        before the write; of cells one record that will not do is enough, and each such file costs another
        look at all of them.
    compact_after : int, optional
        After the commit, bring small files of these tensors together if there are so many of them or more,
        as `TensorLake.optimize` does; at least 2.

    Raises
    ------
    InvalidOptionError
        If a value is none of those.
    """

    how: str | None = None
    axis: int = 0
    mode: str = "error"
    channels_first: bool = False
    cells: CellOptions = field(default_factory=CellOptions)
    options: Mapping[str, str] = field(default_factory=dict)
    storage_options: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False
    resume: bool = False
    skip_bad: bool = False
    compact_after: int | None = None

    def __post_init__(self) -> None:
        """Raise InvalidOptionError for a value that goes with no source."""
        if self.how not in (None, *HOW):
            raise InvalidOptionError(f"how={self.how!r} is none of 'stack', 'concat', 'each'")
        if self.mode not in MODES:
            raise InvalidOptionError(
                f"mode={self.mode!r} is none of 'error', 'overwrite', 'append'"
            )
        if self.compact_after is not None and self.compact_after < 2:
            raise InvalidOptionError(
                f"--compact-after {self.compact_after}: 2 files are the least to bring together"
            )

        check_values(self.options)

    @property
    def batch(self) -> tuple[str, int] | None:
        """Name and number of the batch, None if it has none."""
        return transaction_of(self.options)

    def check_family(self, family: str, sources: Sequence[str]) -> None:
        """Raise InvalidOptionError for an option that sources of this family have no use for."""
        self._check_odd(family, sources)
        if family == "arrays":
            self._check_arrays(sources)
        else:
            self._check_cells(sources)

    def _check_odd(self, family: str, sources: Sequence[str]) -> None:
        cells = self.cells
        if cells.source_version is not None and family != "delta":
            raise InvalidOptionError(
                f"--source-version is for Delta tables, which have versions; {sources[0]} is none"
            )
        is_array = family == "arrays"
        odd = {
            "--shape": ("cells; arrays have their own", is_array and "shape" in self.options),
            "--dtype": ("cells; arrays have their own", is_array and "dtype" in self.options),
            "--delimiter": ("CSV files", family != "csv" and cells.delimiter is not None),
            "--channels-first": (
                "images and TIFF files, whose axes are known",
                is_array and self.channels_first and not any(map(has_channels, sources)),
            ),
            "--timezone": ("tables", family in ("tns", "matrices") and cells.timezone != "UTC"),
        }
        for name, (what, is_odd) in odd.items():
            if is_odd:
                raise InvalidOptionError(f"{sources[0]}: {name} is for {what}; leave it out")

    def _check_arrays(self, sources: Sequence[str]) -> None:
        if self.cells != CellOptions():
            raise InvalidOptionError(
                f"--axis, --value, --column and --where are for tables; {sources[0]} is none"
            )

    def _check_cells(self, sources: Sequence[str]) -> None:
        if self.how is not None or self.channels_first:
            raise InvalidOptionError(
                f"--stack, --concat, --each and --channels-first are for arrays; the cells of {sources[0]} "
                "lie where their indices say, and those of all files make up one tensor"
            )
        if self.resume and self.mode == "append" and self.batch is None:
            raise InvalidOptionError(
                f"--resume of what is appended goes with --txn-app-id and --txn-version: the cells of {sources[0]} "
                "are written all or none, and by the number of the batch the job knows which"
            )
