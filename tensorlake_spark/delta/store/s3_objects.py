"""What only boto3 does with objects on S3 (extra ``s3``).

It makes one unless it is there, lists uploads, and reads one together with its size and ETag by one request.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from tensorlake_spark.delta.store.paths import inside
from tensorlake_spark.delta.store.storage import Storage, refusal, s3_arguments
from tensorlake_spark.delta.store.store_options import KEY, get
from tensorlake_spark.delta.store.timeouts import Timeouts
from tensorlake_spark.errors import MissingDependencyError, StorageError
from tensorlake_spark.threads import IO_THREADS

_EXISTS, _UNKNOWN = "PreconditionFailed", "NotImplemented"
# Answers below 500 after which the same request may succeed.
_PASSING = {"ConditionalRequestConflict", "OperationAborted", "RequestTimeout"}

_COMMIT = (
    "deltalake cannot make this commit, for it removes files with deletion vectors, or brings back former columns; on "
    "S3 it needs boto3: pip install 'tensorlake-spark[s3]'; or use Spark: REORG TABLE ... APPLY (PURGE), or "
    "RESTORE TABLE"
)


def has_client() -> bool:
    """Whether boto3 is installed."""
    return find_spec("boto3") is not None


def check_client(missing: str = _COMMIT) -> None:
    """Raise MissingDependencyError, with this text, if boto3 is not installed."""
    if not has_client():
        raise MissingDependencyError(missing)


def split(uri: str) -> tuple[str, str]:
    """Return the bucket of a URL, and what the keys of its objects begin with.

    Examples
    --------
    >>> split("s3://bucket/a/lake"), split("s3://bucket")
    (('bucket', 'a/lake/'), ('bucket', ''))
    """
    bucket, _, base = uri.removeprefix("s3://").partition("/")
    return bucket, f"{base}/" if base else ""


def put_new(storage: Storage, name: str, data: bytes) -> bool | None:
    """Make an object with one request, unless there is one of its name.

    Parameters
    ----------
    storage : Storage
        A table on S3.
    name : str
        Path in the table.
    data : bytes
        All of the object. If nobody else would write the same bytes, the answer is right also where the store has
        got the request twice.

    Returns
    -------
    bool or None
        False if the object was there, with other bytes; None if nothing was done, for the store has no such request,
        or boto3 has no credentials for it, or does not trust its certificate.

    Raises
    ------
    StorageError
        If the store refuses. Without "status code" in its text the object may have been made, or may be later.
    MissingDependencyError
        If boto3 is not installed.
    """
    check_client(_COMMIT)
    with _answering(storage):
        try:
            return _put_new(storage, name, data)
        except StorageError:
            if get(storage.options, KEY) is not None:
                raise
        # It was refused. The client has the keys that a profile's file had once; there may be new ones now.
        _kept_client.cache_clear()
        return _put_new(storage, name, data)


def _put_new(storage: Storage, name: str, data: bytes) -> bool | None:
    from botocore.exceptions import (
        ClientError,
        CredentialRetrievalError,
        NoCredentialsError,
        PartialCredentialsError,
        ProfileNotFound,
        SSLError,
    )

    bucket, prefix = split(storage.uri)
    place = {"Bucket": bucket, "Key": prefix + inside(name)}
    try:
        client = _client(storage)
        client.put_object(**place, Body=data, IfNoneMatch="*")
    except (
        CredentialRetrievalError, NoCredentialsError, PartialCredentialsError, ProfileNotFound,
    ):  # fmt: skip
        return None  # nothing was sent: deltalake looks for credentials in its own way
    except SSLError as error:
        if "CERTIFICATE_VERIFY_FAILED" not in str(error):
            raise
        return None  # nothing was sent: boto3 does not ask the system which authorities it trusts
    except ClientError as error:
        said = error.response
        code = said.get("Error", {}).get("Code", "")
        status = said.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
        if status == 412 or code == _EXISTS:
            with closing(client.get_object(**place)["Body"]) as body:
                return bool(body.read() == data)
        if status == 501 or code == _UNKNOWN:
            return None
        if status < 500 and code not in _PASSING:
            refused = refusal(storage, error)
            raise StorageError(f"{refused} (status code {status})") from error
        raise
    return True


def read_known(
    storage: Storage, key: str, start: int, stop: int, size: int, etag: str
) -> bytes | None:
    """Return some bytes of an object, if it still has the size and the ETag that are known of it: one request.

    Parameters
    ----------
    storage : Storage
        The bucket.
    key : str
        The object's.
    start, stop : int
        Which bytes, at least one.
    size, etag
        What is known of it.

    Returns
    -------
    bytes or None
        None without boto3, and for whatever is not as expected: others find out, and say, what it is.
    """
    if not has_client():
        return None
    from botocore.exceptions import BotoCoreError, ClientError

    bucket, _ = split(storage.uri)
    span = {} if (start, stop) == (0, size) else {"Range": f"bytes={start}-{stop - 1}"}
    with _quiet():
        try:
            client = _client(storage)
            answer = client.get_object(Bucket=bucket, Key=key, **span)
            with closing(answer["Body"]) as body:
                whole = f"bytes {start}-{stop - 1}/{size}" if span else None
                is_it = answer.get("ETag") == etag and answer.get("ContentRange") == whole
                if not is_it or answer.get("ContentLength") != stop - start:
                    return None
                return bytes(body.read())
        except (BotoCoreError, ClientError, ValueError):
            return None


def _client(storage: Storage) -> Any:
    """Return a client that stays while options and environment are what they are."""
    env = tuple(sorted(item for item in os.environ.items() if item[0].startswith("AWS_")))
    return _kept_client(os.getpid(), tuple(sorted(storage.options.items())), env)


@lru_cache(maxsize=16)
def _kept_client(
    process: int, options: tuple[tuple[str, str], ...], environment: tuple[tuple[str, str], ...]
) -> Any:
    """Return a client that stays, for the threads of a process: a forked child needs connections of its own."""
    return _made(Storage("s3://any", dict(options)), tries=1)


@contextmanager
def s3_client(storage: Storage, missing: str) -> Iterator[Any]:
    """Yield boto3's client, with the endpoint, the keys and the time-outs of a table's options.

    Parameters
    ----------
    storage : Storage
        The table.
    missing : str
        What the error says if boto3 is not installed.

    Raises
    ------
    StorageError
        For what the store, or its client, says.
    """
    check_client(missing)
    with _answering(storage), closing(_made(storage)) as client:
        yield client


@contextmanager
def _answering(storage: Storage) -> Iterator[None]:
    """Turn what the store, or boto3's client, says into StorageError."""
    from botocore.exceptions import BotoCoreError, ClientError

    with _quiet():
        try:
            yield
        except (BotoCoreError, ClientError) as error:
            raise refusal(storage, error) from error


def _made(storage: Storage, tries: int | None = None) -> Any:
    import boto3
    from botocore import UNSIGNED
    from botocore.config import Config

    given = s3_arguments(storage.options)
    timeouts = Timeouts.of(storage.options)
    endpoint = given.get("endpoint_override")
    virtual = given.get("force_virtual_addressing") or not endpoint
    proxy = given["proxy_options"]
    config = Config(
        max_pool_connections=IO_THREADS,
        connect_timeout=timeouts.connect_timeout,
        read_timeout=timeouts.timeout,
        retries={"total_max_attempts": tries or timeouts.max_retries + 1, "mode": "standard"},
        s3={"addressing_style": "virtual" if virtual else "path"},
        signature_version=UNSIGNED if given.get("anonymous") else None,
        proxies=proxy and {"http": proxy, "https": proxy},
        request_checksum_calculation="when_required",  # other stores than AWS do not all know them
        response_checksum_validation="when_required",
    )
    # A session of its own: that of the module is not for several threads.
    return boto3.session.Session().client(
        "s3",
        endpoint_url=f"{given['scheme']}://{endpoint}" if endpoint else None,
        region_name=given["region"] or "us-east-1",
        aws_access_key_id=given.get("access_key"),
        aws_secret_access_key=given.get("secret_key"),
        aws_session_token=given.get("session_token"),
        config=config,
    )


_quiet_lock = threading.Lock()
_quiet_levels: list[int] = []
"""The level of botocore's log before, once for each of those that want it quiet."""


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep botocore from logging its requests, whose headers have the key and the token; for several threads, too."""
    log = logging.getLogger("botocore")
    with _quiet_lock:
        _quiet_levels.append(_quiet_levels[0] if _quiet_levels else log.level)
        log.setLevel(max(logging.INFO, log.getEffectiveLevel()))
    try:
        yield
    finally:
        with _quiet_lock:
            before = _quiet_levels.pop()
            if not _quiet_levels:
                log.setLevel(before)
