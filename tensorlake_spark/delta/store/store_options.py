"""The options of a store: which names its clients know, and which values both of them take alike."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from tensorlake_spark.delta.store.timeouts import NAMES, Timeouts
from tensorlake_spark.errors import InvalidOptionError, check_text, did_you_mean

ENDPOINT = (
    "aws_endpoint_url_s3", "aws_endpoint_url", "endpoint_url", "aws_endpoint", "endpoint",
)  # fmt: skip
KEY = ("aws_access_key_id", "access_key_id")
SECRET = ("aws_secret_access_key", "secret_access_key")
TOKEN = ("aws_session_token", "session_token", "aws_token", "token")
REGION = ("aws_region", "region", "aws_default_region", "default_region")
UNSIGNED = ("aws_skip_signature", "skip_signature")
VIRTUAL = ("aws_virtual_hosted_style_request", "virtual_hosted_style_request")
PROXY = ("aws_proxy_url", "proxy_url")

# What deltalake takes from the environment only, and what pyarrow does not know at all.
_ENVIRONMENT = (
    "aws_profile", "aws_role_arn", "aws_role_session_name", "aws_web_identity_token_file",
    "aws_container_credentials_relative_uri", "aws_container_credentials_full_uri",
)  # fmt: skip
_ASSUMED = (
    "aws_iam_role_arn", "aws_iam_role_session_name", "aws_s3_assume_role_arn",
    "aws_s3_role_session_name",
)  # fmt: skip

# Of object_store, with aws_ before them and without: those of S3, then those of its HTTP client.
_EITHER = (
    "access_key_id", "secret_access_key", "default_region", "region", "bucket", "bucket_name", "endpoint_url",
    "endpoint", "session_token", "token", "virtual_hosted_style_request", "s3_express", "imdsv1_fallback",
    "metadata_endpoint", "unsigned_payload", "checksum_algorithm", "container_credentials_relative_uri",
    "container_credentials_full_uri", "container_authorization_token_file", "web_identity_token_file",
    "role_arn", "role_session_name", "endpoint_url_sts", "skip_signature", "copy_if_not_exists",
    "conditional_put", "disable_tagging", "disable_bulk_delete", "request_payer", "server_side_encryption",
    "sse_kms_key_id", "sse_bucket_key_enabled", "sse_customer_key_base64",
    "allow_http", "allow_invalid_certificates", "disable_system_certificates", "connect_timeout",
    "default_content_type", "http1_only", "http2_only", "http2_keep_alive_interval",
    "http2_keep_alive_timeout", "http2_keep_alive_while_idle", "http2_max_frame_size", "pool_idle_timeout",
    "pool_max_idle_per_host", "proxy_url", "proxy_ca_certificate", "proxy_excludes", "randomize_addresses",
    "read_timeout", "timeout", "user_agent",
)  # fmt: skip
# Of delta-rs.
_OWN = (
    "aws_endpoint_url_s3", "aws_endpoint_url_dynamodb", "aws_region_dynamodb", "aws_access_key_id_dynamodb",
    "aws_secret_access_key_dynamodb", "aws_session_token_dynamodb", "aws_profile", "aws_s3_addressing_style",
    "aws_s3_locking_provider", "aws_s3_pool_idle_timeout_seconds", "aws_sts_pool_idle_timeout_seconds",
    "aws_s3_get_internal_server_error_retries", "aws_s3_allow_unsafe_rename", "aws_ec2_metadata_disabled",
    "aws_ec2_metadata_timeout", "aws_force_credential_load", "allow_unsafe_rename",
    "delta_dynamo_table_name", "delta_dynamo_billing_mode", "delta_dynamo_max_elapsed_request_time",
    "max_concurrency", "concurrency_limit", "certificate_path", "multi_threaded", "worker_threads",
    "thread_name", "enable_io", "enable_time",
)  # fmt: skip
_KNOWN = frozenset(
    [*_EITHER, *(f"aws_{name}" for name in _EITHER), *_OWN, *_ASSUMED]
    + [name for names in NAMES.values() for name in names]
)
# Of other stores: one set of options may serve a table there and sources on S3.
_ELSEWHERE = ("azure_", "google_")

# The words of object_store, in any case.
_TRUE, _FALSE = ("true", "1", "on", "yes", "y"), ("false", "0", "off", "no", "n")


def as_text(options: Mapping[str, Any]) -> dict[str, str]:
    """Return options as text: numbers and truth values as they are printed.

    Raises
    ------
    InvalidOptionError
        If they are no mapping, or one is something else, such as None, which would become a word, or has half of a
        character.
    """
    if not isinstance(options, Mapping):
        raise InvalidOptionError(
            f"storage_options are of type {type(options).__name__}; give a mapping of names to texts, such as "
            "{'AWS_REGION': 'eu-west-1'}"
        )
    for name, value in options.items():
        if not isinstance(value, (str, bool, int, float)):
            raise InvalidOptionError(
                f"the storage option {name} is of type {type(value).__name__}; give it as text, or leave it out"
            )
        check_text(str(name), "the storage option")
        try:
            str(value).encode()
        except UnicodeEncodeError as error:
            raise InvalidOptionError(
                f"the storage option {name} has half of a character at character {error.start + 1} of its value; "
                "write all of it, or leave it out"
            ) from None  # the error has the value, which may be a secret
    return {str(name): str(value) for name, value in options.items()}


def get(options: Mapping[str, str], names: Sequence[str]) -> str | None:
    """Return the option that has the first of some names, in any case, or None."""
    lower = {name.lower(): value for name, value in options.items()}
    return next((lower[name] for name in names if name in lower), None)


def get_or_env(options: Mapping[str, str], names: Sequence[str]) -> str | None:
    """Return the option of some names, else the variable of the environment, or None."""
    env = (os.environ.get(name.upper()) for name in names if name.startswith("aws_"))
    return get(options, names) or next((value for value in env if value), None)


def is_true(options: Mapping[str, str], names: Sequence[str]) -> bool:
    """Whether an option is true, in any of the words that deltalake takes for it.

    Raises
    ------
    InvalidOptionError
        If it is neither true nor false.

    Examples
    --------
    >>> is_true({"AWS_SKIP_SIGNATURE": "Yes"}, UNSIGNED), is_true({}, UNSIGNED)
    (True, False)
    """
    value = get_or_env(options, names)
    if value is None:
        return False
    if value.lower() not in (*_TRUE, *_FALSE):
        raise InvalidOptionError(f"{names[0].upper()}={value!r} is neither 'true' nor 'false'")
    return value.lower() in _TRUE


def proxy_of(options: Mapping[str, str]) -> str | None:
    """Return the URL of the proxy, with its port, or None where there is none.

    Raises
    ------
    InvalidOptionError
        If it is no such URL; what it says is not repeated, for it may have a password.
    """
    value = get_or_env(options, PROXY)
    if value is None:
        return None
    try:
        parts = urlsplit(value)
        port = {"http": 80, "https": 443}[parts.scheme] if parts.port is None else parts.port
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError
    except (ValueError, KeyError):
        raise InvalidOptionError(
            f"{PROXY[1]} is no URL of a proxy such as http://HOST:3128 or https://USER:PASSWORD@HOST:3128"
        ) from None
    host = parts.netloc if parts.port == port else f"{parts.netloc.rstrip(':')}:{port}"
    return f"{parts.scheme}://{host}"


def check_options(options: Mapping[str, str], is_s3: bool) -> None:
    """Raise InvalidOptionError for what only one client would follow, and for what none knows.

    Parameters
    ----------
    options : mapping of str to str
        Of one store.
    is_s3 : bool
        Whether it is S3: of other stores the names are not known here.
    """
    for name, value in options.items():
        if name.lower() in ENDPOINT:
            _check_endpoint(name, value)
            if "://" not in value:
                raise InvalidOptionError(
                    f"{name}={value!r} has no scheme; write http://{value} or https://{value}"
                )
        if "sse_" in name.lower() or "server_side_encryption" in name.lower():
            raise InvalidOptionError(
                f"{name} would reach the log and not the data files; give the bucket a default "
                "encryption instead"
            )
        if name.lower() in _ENVIRONMENT:
            raise InvalidOptionError(
                f"{name} as a storage option would not reach the log and the data files alike; set it in "
                "the environment, here and of every executor"
            )
        if name.lower() in _ASSUMED:
            raise InvalidOptionError(
                f"{name} would reach the log and not the data files; give temporary keys of the role, or a "
                "profile (AWS_PROFILE in the environment) whose credential_process prints them"
            )
        if is_s3 and not (name.lower() in _KNOWN or name.lower().startswith(_ELSEWHERE)):
            raise InvalidOptionError(
                f"storage option {name!r} is known to no client of s3://"
                f"{did_you_mean(name.lower(), _KNOWN)}"
            )
    if is_s3:
        key, secret, token = (get(options, names) is not None for names in (KEY, SECRET, TOKEN))
        if key != secret or (token and not key):
            raise InvalidOptionError(
                "credentials in the storage options are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and "
                "AWS_SESSION_TOKEN where they are temporary; give all that belong together, or none"
            )
        _check_endpoint("the endpoint", get_or_env(options, ENDPOINT) or "")
        is_true(options, UNSIGNED)
        is_true(options, VIRTUAL)
        proxy_of(options)
    Timeouts.of(options)


def _check_endpoint(name: str, value: str) -> None:
    if re.search("[@?#]", value):
        raise InvalidOptionError(
            f"{name} has a user, a password or a query in it, which messages would show; write "
            "http://HOST:PORT or https://HOST, and give credentials as AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY"
        )
