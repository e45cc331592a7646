"""Multipart uploads that a killed writer left in an S3 bucket: no reader sees them, but they are paid for.

Neither of the clients that read and write can list them, so boto3 does (extra ``s3``).
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from tensorlake_spark.delta.files.table_folder import inner_tables
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage, refusal, s3_arguments
from tensorlake_spark.delta.store.timeouts import Timeouts
from tensorlake_spark.errors import MissingDependencyError


def abort_uploads(snapshot: Snapshot, retention_hours: float | None, dry_run: bool) -> list[str]:
    """Abort uploads in a table's folder that were begun longer ago, or only name them; see `TensorLake.abort_uploads`.

    Those of other tables in the folder are left to them.
    """
    storage = snapshot.storage
    if not storage.uri.startswith("s3://"):
        return []
    kept = snapshot.retention if retention_hours is None else dt.timedelta(hours=retention_hours)
    until = dt.datetime.now(dt.timezone.utc) - kept
    bucket, _, base = storage.uri.removeprefix("s3://").partition("/")
    prefix = f"{base}/" if base else ""
    inner = inner_tables(storage)
    out = []
    with _client(storage) as client:
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


@contextmanager
def _client(storage: Storage) -> Iterator[Any]:
    """Yield boto3's client, with the endpoint, the keys and the time-outs of a table's options."""
    try:
        import boto3
        from botocore import UNSIGNED
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError as error:
        raise MissingDependencyError(
            "listing multipart uploads needs boto3: pip install 'tensorlake-spark[s3]'; without it, give the bucket "
            "a lifecycle rule (AbortIncompleteMultipartUpload)"
        ) from error
    given = s3_arguments(storage.options)
    timeouts = Timeouts.of(storage.options)
    endpoint = given.get("endpoint_override")
    virtual = given.get("force_virtual_addressing") or not endpoint
    proxy = given["proxy_options"]
    config = Config(
        connect_timeout=timeouts.connect_timeout,
        read_timeout=timeouts.timeout,
        retries={"total_max_attempts": timeouts.max_retries + 1, "mode": "standard"},
        s3={"addressing_style": "virtual" if virtual else "path"},
        signature_version=UNSIGNED if given.get("anonymous") else None,
        proxies=proxy and {"http": proxy, "https": proxy},
    )
    with _quiet():
        try:
            with closing(
                boto3.client(
                    "s3",
                    endpoint_url=f"{given['scheme']}://{endpoint}" if endpoint else None,
                    region_name=given["region"] or "us-east-1",
                    aws_access_key_id=given.get("access_key"),
                    aws_secret_access_key=given.get("secret_key"),
                    aws_session_token=given.get("session_token"),
                    config=config,
                )
            ) as client:
                yield client
        except (BotoCoreError, ClientError) as error:
            raise refusal(storage, error) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep botocore from logging its requests, whose headers have the key and the token."""
    log = logging.getLogger("botocore")
    before = log.level
    log.setLevel(max(logging.INFO, log.getEffectiveLevel()))
    try:
        yield
    finally:
        log.setLevel(before)
