"""What a process needs to know to read tiles of large samples, so that it asks a store for nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from pyarrow.parquet import FileMetaData

from tensorlake_spark.datasets.apart.inner_tables import TENSORS_FOLDER
from tensorlake_spark.datasets.apart.stored_parts import StoredParts
from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.files.footer import learn_footers
from tensorlake_spark.delta.files.scan import footers
from tensorlake_spark.loader.columns.values import Array
from tensorlake_spark.loader.sources.loader_source import Told
from tensorlake_spark.rows.metadata import Meta


class TileFacts(NamedTuple):
    """What is known of the tensors with the tiles of some samples.

    Attributes
    ----------
    metas : dict of str to Meta
        What their metadata rows say, by their ids.
    footers : dict of str to FileMetaData
        Of the files that have their tiles, by path.
    """

    metas: dict[str, Meta]
    footers: dict[str, FileMetaData]


def tile_facts(
    parts: StoredParts, names: Sequence[str], positions: Array, told: Told
) -> TileFacts | None:
    """Return what a process needs to know to read the tiles of some samples, None where they have none.

    Parameters
    ----------
    parts : StoredParts
        Of the dataset.
    names : sequence of str
        The columns that it reads.
    positions : int64 ndarray
        Which samples.
    told : Told
        The files of which it knows.
    """
    lake = parts.lake_of(names)
    if lake is None:
        return None
    here = np.unique(positions)
    ids = [one for name in names if name in parts.schema for one in parts.tensors_of(name, here)]
    if not ids:
        return None
    places = np.unique(np.concatenate([lake.files.places_of(one) for one in ids])).tolist()
    # All at once: what metadata rows say mostly comes with the footers, and is looked up in memory then.
    read = {lake.files.path[place]: one.metadata for place, one in footers(lake, places)}
    metas = {one: catalog.get(lake, one) for one in ids}
    new = {lake.files.path[place] for place in told.new(f"{TENSORS_FOLDER}/", places)}
    return TileFacts(metas, {path: one for path, one in read.items() if path in new})


def learn_tiles(parts: StoredParts, names: Sequence[str], facts: TileFacts) -> None:
    """Know what `tile_facts` returned in another process."""
    lake = parts.lake_of(names)
    if lake is not None:
        parts.learn_tensors(facts.metas)
        learn_footers(lake.storage, facts.footers)
