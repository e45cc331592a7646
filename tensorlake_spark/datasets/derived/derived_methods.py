"""The methods of a dataset that derive something from it: another layout, a copy, a view that is kept."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorlake_spark.audit.check import in_short
from tensorlake_spark.datasets.derived import relayout, saved_views
from tensorlake_spark.datasets.derived.column_plan import chosen_types, origins_of
from tensorlake_spark.datasets.derived.dataset_copy import (
    Rows,
    Selection,
    check_beside,
    copy_dataset,
)
from tensorlake_spark.datasets.derived.lineage import Lineage, lineage_of
from tensorlake_spark.datasets.derived.lineage_check import check_lineage
from tensorlake_spark.datasets.maintenance.maintenance_methods import MaintenanceMethods
from tensorlake_spark.datasets.samples.sample_selection import whole_numbers
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import InvalidOptionError, SampleNotFoundError, check_flag

if TYPE_CHECKING:
    from typing_extensions import Self

    from tensorlake_spark.audit.check import CheckReport
    from tensorlake_spark.datasets.derived.saved_views import SavedView


class DerivedMethods(MaintenanceMethods):
    """A dataset from which others are made."""

    # ------------------------------------------------------------------ layout

    def rechunk(
        self,
        order: Any = None,
        *,
        renumber: bool = False,
        file_bytes: int | None = None,
        row_group_bytes: int | None = None,
        workers: Any = None,
    ) -> None:
        """Rewrite the dataset in place, in an order. Media are copied as they are stored.

        Samples keep their sids, and so their positions. A read in `order` is then a scan of the files. Views, lineages
        and other tables that name sids stay right. With `renumber` the samples get new sids that ascend in `order`.
        Then ``ds[0]`` is the first sample of `order`, and a read of all samples is in that order.

        Parameters
        ----------
        order : str or sequence of int, optional
            The sids of all samples, or columns as after ORDER BY: ``"label, image.height DESC NULLS LAST"``. As in
            Spark, nulls come first, and with DESC last. Equal samples stay in the order of their sids. By default, the
            order of the sids.
        renumber : bool
            Whether samples get new sids. This takes two commits: the first only reserves the numbers. The old sids are
            not used again.
        file_bytes, row_group_bytes : int, optional
            Target sizes; by default the table's, and 2 MiB.
        workers : int or SparkSession, optional
            With `renumber`: a number of threads, or a Spark session whose executors write.

        Raises
        ------
        InvalidOptionError
            If `order` names a column that does not exist or cannot be sorted, or does not name each sample once.
        ConcurrentWriteError
            If another writer added or deleted samples meanwhile; nothing is committed then.
        UnsupportedFeatureError
            If a file has a deletion vector and lies in another object store than S3.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"label": tl.types.ClassLabel(["cat", "dog"])})
        >>> ds.extend({"label": ["dog", "cat", "dog"]})
        >>> ds.rechunk("label DESC")
        >>> ds.sids.tolist(), ds["label"][:].tolist()
        ([0, 1, 2], [1, 0, 1])
        >>> ds.rechunk("label", renumber=True)
        >>> ds.sids.tolist(), ds["label"][:].tolist()
        ([3, 4, 5], [0, 1, 1])
        """
        self._check_writable()
        self.stored  # noqa: B018 # raises
        if check_flag("renumber", renumber):
            sizes = file_bytes, row_group_bytes
            self._show(relayout.renumber(self._storage, order, *sizes, workers))
            return
        if workers is not None:
            raise InvalidOptionError("workers is for renumber=True; leave it out otherwise")
        self._show(relayout.relayout(self._storage, order, file_bytes, row_group_bytes))

    # ------------------------------------------------------------------ copies

    def copy(
        self,
        uri: str | os.PathLike[str],
        samples: Any = None,
        columns: Sequence[str] | None = None,
        *,
        links: str = "fetch",
        types: Mapping[str, Any] | None = None,
        workers: Any = None,
        storage_options: Mapping[str, str] | None = None,
        row_group_bytes: int | None = None,
    ) -> Self:
        """Make a new dataset of samples in an order. Media are copied as they are; files of links are copied in.

        The new samples have the sids 0, 1, 2, ... in that order, and become visible in one commit. `lineage` of the
        new dataset says where they came from.

        Parameters
        ----------
        uri : str or path
            A place without a table.
        samples : sequence of int, or str, optional
            Sids in the order of the new samples; a sid may occur twice. Or a condition, as for `to_arrow`. All by
            default.
        columns : sequence of str, optional
            Names; all by default.
        links : str
            ``"fetch"``, or ``"keep"`` for links as they are.
        types : mapping of str to Type, optional
            New types of columns, such as ``{"image": Image("png")}``; these columns are decoded and encoded anew.
        workers : int or SparkSession, optional
            A number of threads, or a Spark session whose executors copy.
        storage_options : mapping, optional
            For the store of the new dataset; by default those of this one.
        row_group_bytes : int, optional
            Target size of a row group, 2 MiB by default.

        Returns
        -------
        Dataset
            The new one.

        Raises
        ------
        InvalidOptionError
            If there is a table at the place, or no such column.
        SampleNotFoundError
            If there is no sample with a sid.
        InvalidSampleError
            If a value does not fit the new type of its column.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"label": tl.types.ClassLabel(["cat", "dog"]), "size": "int32"})
        >>> ds.extend({"label": ["dog", "cat", "dog"], "size": [3, 4, 5]})
        >>> few = ds.copy(tempfile.mkdtemp(), [2, 0])
        >>> few["size"][:].tolist(), few.lineage.samples, few.check(sources=True).ok
        ([5, 3], 2, True)
        """
        relayout.check_bytes(None, row_group_bytes)
        base = self.stored.snapshot
        if samples is None:
            positions = np.arange(len(self))
        elif isinstance(samples, str):
            positions = self.positions_where(samples)
        else:
            positions = self._positions_of(samples)
        schema, fetched, anew = chosen_types(self.schema, columns, links, types, self.uri)
        origin, recoded = origins_of(base, self._rules, schema, fetched, anew, positions)
        rows = Rows(len(positions), [positions], recoded)
        chosen = Selection(schema, [("dataset", origin)], lambda: rows)
        options = self._storage.options if storage_options is None else storage_options
        storage = Storage.at(uri, options)
        check_beside(storage, self.uri)
        snapshot = copy_dataset(storage, chosen, self.tile_bytes, workers, row_group_bytes)
        return type(self)(storage, snapshot, rules=self._rules)

    def _positions_of(self, samples: Any) -> Any:
        sids = whole_numbers(samples)
        if sids.ndim != 1 or (len(sids) and sids.dtype != np.int64):
            raise InvalidOptionError(
                f"samples is {sids.dtype} of shape {sids.shape}; it is a list of sids, or a condition"
            )
        positions = self.stored.positions_of(sids.astype(np.int64))
        if (positions < 0).any():
            raise SampleNotFoundError(
                f"the dataset at {self.uri} has no sample with sid {[*samples][int(np.argmin(positions))]} at version "
                f"{self.version}; ds.sids has them all"
            )
        return positions

    @property
    def lineage(self) -> Lineage | None:
        """Where the samples came from, if `copy` or a view's ``materialize`` made this dataset; None otherwise.

        ``print`` shows it; it has ``sources``, ``query``, ``package``, ``created``, ``computed``, ``samples`` and
        ``digests``.
        """
        return None if self._stored is None else lineage_of(self._stored.snapshot)

    def check(self, *, deep: bool = False, sources: bool = False) -> CheckReport:
        """Check that every file, sample, value and part of the version that is shown agrees with the others.

        - Files: each exists, has the size, the number of rows and the statistics that the log says, and is whole.
        - ``sid``: no sample is without a number, none is there twice, and none was not given by the dataset.
        - ``value``: every value is what its type takes: classes have a name, boxes are in order, arrays have their
          rank, nothing is null that may not be. The bytes of media have their checksum, and their headers are what
          the row says. With `deep` media are decoded too.
        - ``pin``, ``apart``, ``tiles``: the versions of the inner tables are there and sound, apart columns have one
          row a sample, and tiles the shape that the sample's row says.
        - ``lineage``: with `sources`, each column that was copied is what it is in the version of the source that was
          read, and the others have the digest that they had. Tiles are compared where they were copied, not where
          they were computed.
        - ``source``: with `sources`, a source that is gone, or has changed since. This is a notice, not an error.
        - Orphans: files that no version names. They are notices, not errors.

        Every byte is read; memory is bounded by a row group a thread. Links are not followed.

        Parameters
        ----------
        deep : bool
            Whether media are decoded.
        sources : bool
            Whether the dataset is compared with those that it was made from, see `lineage`.

        Returns
        -------
        CheckReport
            ``ok``; ``findings``, each with ``kind, place, text``, what could repair it among them; and how many
            ``files``, ``rows``, ``samples`` and ``nbytes`` were checked.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"label": tl.types.ClassLabel(["cat", "dog"])})
        >>> ds.extend({"label": ["dog", "cat"]})
        >>> report = ds.check()
        >>> report.ok, report.samples
        (True, 2)
        """
        is_compared = check_flag("sources", sources)
        report = super().check(deep=deep)
        if not is_compared:
            return report
        found = check_lineage(self.stored.snapshot, dict(self._storage.options))
        return replace(report, findings=in_short([*report.findings, *found]))

    # ------------------------------------------------------------------ saved views

    @property
    def views(self) -> dict[str, SavedView]:
        """The views that are kept, by name: text, sources with versions, columns, and the sids in order."""
        if self._stored is None:
            return {}
        return {
            name: saved_views.find(self._storage, name) for name in saved_views.names(self._storage)
        }

    def delete_view(self, name: str) -> None:
        """Remove a stored view. `vacuum` no longer keeps the versions that it read.

        Raises
        ------
        InvalidOptionError
            If there is no such view.
        """
        self._check_writable()
        self.stored  # noqa: B018 # raises
        saved_views.delete(self._storage, name)
        self.refresh()
