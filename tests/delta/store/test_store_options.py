"""Options of a store: known ones are taken alike by both clients, others refused."""

import traceback

import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.store.storage import Storage

SECRET = "wJalr/XUtnFEMI"


BAD_ENDPOINTS = [f"http://me:{SECRET}@h:9", f"me:{SECRET}@h:9", f"https://h/?sig={SECRET}"]


@pytest.mark.parametrize("value", BAD_ENDPOINTS)
def test_credentials_in_an_endpoint_are_refused_and_not_printed(value, monkeypatch):
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with pytest.raises(tl.InvalidOptionError, match="AWS_ENDPOINT_URL has a user") as caught:
        Storage("s3://bucket/lake", {"AWS_ENDPOINT_URL": value})
    assert SECRET not in str(caught.value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", value)
    with pytest.raises(tl.InvalidOptionError, match="the endpoint has a user") as caught:
        Storage("s3://bucket/lake")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("value", ["socks5://me:{}@h:9", "me:{}@h:9", "http://me:{}@h:x", "{}"])
def test_a_proxy_that_is_none_is_refused_and_not_printed(value):
    with pytest.raises(tl.InvalidOptionError, match="proxy_url is no URL of a proxy") as caught:
        Storage("s3://bucket/lake", {"proxy_url": value.format(SECRET.replace("/", ""))})
    assert "XUtn" not in "".join(traceback.format_exception(caught.value))


MISSPELT = [
    ("AWS_SECRT_ACCESS_KEY", "aws_secret_access_key"), ("timout", "timeout"),
    ("backof_config.base", "backoff_config.base"), ("nonsense", ""),
]  # fmt: skip


@pytest.mark.parametrize(("name", "near"), MISSPELT)
def test_an_option_that_nobody_knows_is_refused(name, near):
    with pytest.raises(tl.InvalidOptionError, match=f"{name}.*{near}") as caught:
        Storage("s3://bucket/lake", {name: SECRET})
    assert SECRET not in str(caught.value)


KNOWN = [
    "aws_bucket", "aws_checksum_algorithm", "aws_conditional_put", "conditional_put", "copy_if_not_exists",
    "AWS_DEFAULT_REGION", "default_region", "aws_disable_tagging", "aws_imdsv1_fallback",
    "aws_metadata_endpoint", "aws_request_payer", "aws_s3_express", "aws_unsigned_payload",
    "aws_endpoint_url_sts", "allow_http", "AWS_ALLOW_HTTP", "allow_invalid_certificates",
    "aws_allow_invalid_certificates", "proxy_excludes", "proxy_ca_certificate", "pool_idle_timeout",
    "pool_max_idle_per_host", "http1_only", "http2_only", "http2_keep_alive_interval", "randomize_addresses",
    "user_agent", "default_content_type", "AWS_S3_ALLOW_UNSAFE_RENAME", "AWS_S3_LOCKING_PROVIDER",
    "AWS_FORCE_CREDENTIAL_LOAD", "AWS_EC2_METADATA_DISABLED", "AWS_ENDPOINT_URL_DYNAMODB",
    "DELTA_DYNAMO_TABLE_NAME", "max_concurrency", "concurrency_limit", "certificate_path", "worker_threads",
    "azure_storage_account_name", "google_bucket",
]  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_an_option_of_deltalake_or_its_client_is_taken(name):
    for form in (name, name.upper(), name.lower()):
        Storage("s3://bucket/lake", {form: "1"})


@pytest.mark.parametrize("value", [True, "True", "1", "ON", "yes", "y"])
def test_what_deltalake_takes_for_true_is_true_for_the_data_files_too(value):
    given = {"AWS_REGION": "x", "AWS_SKIP_SIGNATURE": value, "virtual_hosted_style_request": value}
    client = Storage("s3://bucket/lake", given).place[0].__reduce__()[1][0]
    assert client["anonymous"]
    assert client["force_virtual_addressing"]


@pytest.mark.parametrize("value", [False, "FALSE", "0", "off", "no", "n"])
def test_what_deltalake_takes_for_false_is_false_for_the_data_files_too(value):
    storage = Storage("s3://bucket/lake", {"AWS_REGION": "x", "AWS_SKIP_SIGNATURE": value})
    assert not storage.place[0].__reduce__()[1][0]["anonymous"]


def test_a_word_that_is_neither_true_nor_false_is_refused():
    with pytest.raises(tl.InvalidOptionError, match="AWS_SKIP_SIGNATURE='t' is neither"):
        Storage("s3://bucket/lake", {"aws_skip_signature": "t"})


@pytest.mark.parametrize("value", [None, b"a-secret", {"a-secret": 1}])
def test_an_option_that_is_no_text_is_refused_and_not_printed(value):
    """None would be the word for a token; a number and a truth value are text as they are printed."""
    with pytest.raises(tl.InvalidOptionError, match="AWS_SESSION_TOKEN is of type") as caught:
        tl.open("s3://bucket/lake", storage_options={"AWS_SESSION_TOKEN": value})
    assert "a-secret" not in str(caught.value)
    with pytest.raises(tl.InvalidOptionError, match="storage_options are of type") as caught:
        tl.open("s3://bucket/lake", storage_options=["a-secret", value])
    assert "a-secret" not in str(caught.value)
    assert Storage("s3://b/x", {"max_retries": 3}).options == {"max_retries": "3"}


def test_half_of_a_character_is_refused_and_no_value_is_printed(tmp_path):
    for place in ("s3://bucket/lake", str(tmp_path / "lake")):
        for door in (tl.open, tl.dataset):
            with pytest.raises(
                tl.InvalidOptionError,
                match=r"option AWS_SECRET_ACCESS_KEY has half .* at character 9 of its value",
            ) as caught:
                door(place, storage_options={"AWS_SECRET_ACCESS_KEY": "a-secret\ud800"})
            assert "a-secret" not in str(caught.value)
            assert caught.value.__suppress_context__
            with pytest.raises(
                tl.InvalidOptionError, match=r"option 'AWS_\\udc00REGION' has half of a character"
            ):
                door(place, storage_options={"AWS_\udc00REGION": "eu-west-1"})


def test_options_of_a_dataset_that_are_no_mapping_are_refused(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"x": "int32"})
    ds.extend({"x": [1]})
    for call in (
        lambda: tl.dataset(tmp_path / "ds", storage_options="a-secret"),
        lambda: ds.copy(tmp_path / "other", storage_options=["a-secret"]),
        lambda: ds.query("SELECT x FROM dataset").materialize(
            tmp_path / "other", storage_options="a-secret"
        ),
    ):
        with pytest.raises(tl.InvalidOptionError, match="storage_options are of type") as caught:
            call()
        assert "a-secret" not in str(caught.value)


def test_an_endpoint_without_scheme_is_refused():
    with pytest.raises(tl.InvalidOptionError, match="write http://localhost:9000 or https://"):
        Storage("s3://bucket/lake", {"aws_endpoint_url": "localhost:9000"})


def test_encryption_that_would_miss_the_data_is_refused():
    with pytest.raises(tl.InvalidOptionError, match="AWS_SSE_KMS_KEY_ID"):
        Storage("s3://bucket/lake", {"AWS_SSE_KMS_KEY_ID": "a-key"})
