"""Multipart uploads that a killed writer left in an S3 bucket: no reader sees them, but they are paid for.

Neither of the clients that read and write can list them, so boto3 does (extra ``s3``).
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from tensorlake_spark.delta.files.table_folder import everything, inner_tables
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.s3_objects import s3_client, split

_MISSING = (
    "listing multipart uploads needs boto3: pip install 'tensorlake-spark[s3]'; without it, give the bucket "
    "a lifecycle rule (AbortIncompleteMultipartUpload)"
)


def abort_uploads(snapshot: Snapshot, retention_hours: float | None, dry_run: bool) -> list[str]:
    """Abort uploads in a table's folder that were begun longer ago, or only name them; see `TensorLake.abort_uploads`.

    Those of other tables in the folder are left to them.
    """
    storage = snapshot.storage
    if not storage.uri.startswith("s3://"):
        return []
    kept = snapshot.retention if retention_hours is None else dt.timedelta(hours=retention_hours)
    until = dt.datetime.now(dt.timezone.utc) - kept
    bucket, prefix = split(storage.uri)
    inner = inner_tables(everything(storage))
    out = []
    with s3_client(storage, _MISSING) as client:
        pages = client.get_paginator("list_multipart_uploads")
        for page in list(pages.paginate(Bucket=bucket, Prefix=prefix)):
            for upload in page.get("Uploads", ()):
                name = upload["Key"].removeprefix(prefix)
                if (kept and upload["Initiated"] > until) or name.startswith(inner):
                    continue
                if not dry_run:
                    _abort(client, bucket, upload)
                out.append(name)
    return sorted(out)


def _abort(client: Any, bucket: str, upload: Any) -> None:
    try:
        client.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])
    except client.exceptions.NoSuchUpload:  # its writer, or somebody else, was faster
        return
