"""A table that was not there yet: an empty one, with the least protocol that serves."""

from __future__ import annotations

from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError

from tensorlake_spark.delta.log.properties import TABLE_PROPERTIES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import TensorLakeError
from tensorlake_spark.rows.row import SCHEMA


def create_table(storage: Storage) -> DeltaTable:
    """Create an empty tensor table with the least protocol that serves: reader 1, writer 2.

    Two writers may try at once; whoever comes second opens what the first made.
    """
    with reaching(storage):
        try:
            return DeltaTable.create(
                storage.uri,
                SCHEMA,
                mode="ignore",
                configuration=TABLE_PROPERTIES,
                storage_options=storage.log_options,
                # With retries, who comes second describes the table anew, in a version of its own.
                commit_properties=CommitProperties(max_commit_retries=0),
                raise_if_key_not_exists=False,
            )
        except (DeltaError, OSError) as failed:
            try:
                return Snapshot.expect(storage).table
            except TensorLakeError:
                raise failed from None
