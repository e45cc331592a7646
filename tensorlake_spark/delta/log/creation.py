"""A table that was not there yet: an empty one, with the least protocol that serves."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import DeltaError

from tensorlake_spark.delta.log.properties import TABLE_PROPERTIES
from tensorlake_spark.delta.log.requirements import TENSORS
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import InvalidOptionError, TensorLakeError
from tensorlake_spark.rows.row import SCHEMA


def create_table(
    storage: Storage,
    schema: Schema | pa.Schema = SCHEMA,
    properties: Mapping[str, str] = TABLE_PROPERTIES,
    kind: str = TENSORS,
    must_be_new: bool = False,
) -> DeltaTable:
    """Create an empty table with the least protocol that serves: reader 1, writer 2.

    Two writers may try at once; whoever comes second opens what the first made, or with `must_be_new` gets an error.

    Parameters
    ----------
    storage : Storage
        Where.
    schema : deltalake.Schema or pyarrow.Schema
        Its columns, by default those of a tensor table.
    properties : mapping of str to str
        Its properties.
    kind : str
        What it is, `requirements.TENSORS` or `requirements.SAMPLES`.
    must_be_new : bool
        Whether a table that is there is an error.

    Raises
    ------
    InvalidOptionError
        If there is one, and it must be new.
    """
    with reaching(storage):
        try:
            return DeltaTable.create(
                storage.uri,
                schema,
                mode="error" if must_be_new else "ignore",
                configuration=dict(properties),
                storage_options=storage.log_options,
                # With retries, who comes second describes the table anew, in a version of its own.
                commit_properties=CommitProperties(max_commit_retries=0),
                raise_if_key_not_exists=False,
            )
        except (DeltaError, OSError) as failed:
            try:
                found = Snapshot.expect(storage, kind).table
            except TensorLakeError:
                raise failed from None
            if must_be_new:
                raise InvalidOptionError(
                    f"there is a table at {storage.uri} already; choose another place, or delete it"
                ) from None
            return found
