"""Receipts of a purge: what was written is read, and what was changed since is told."""

import json
from dataclasses import fields, replace

import pytest
from places import DOCS

import tensorlake_spark as tl
from tensorlake_spark.audit.receipt import (
    PurgedFile,
    PurgeReceipt,
    WrittenFile,
    ranges_text,
    verify_receipt,
)

RECEIPT = PurgeReceipt(
    table="/data/lake", tensor_id="faces", region="user=42", at="2026-04-01T00:00:00+00:00",
    dry_run=False, version_before=3, version_after=4, rewritten=("a.parquet",),
    written=(WrittenFile("b.parquet", 10, "00"),),
    deleted=(PurgedFile("a.parquet", 20, "11", 2),),
    pending=(PurgedFile("c.parquet", 5, "22", 1, "2026-04-08T00:00:00+00:00"),),
    uncertified=(("d.parquet", "it is torn"),), staging=(), versions_lost="0-3",
    tags_lost=("v1",), searched={"files": 3}, found_elsewhere=(), verified=False,
    reason="1 files are kept by the retention", digest_before="ab" * 32, digest_after="cd" * 32,
    bytes_replaced=20, bytes_written=10, bytes_hashed=10,
)  # fmt: skip


@pytest.mark.parametrize("key", [None, b"secret"])
def test_what_is_written_is_read(key):
    assert verify_receipt(RECEIPT.to_json(key), key) == RECEIPT
    assert verify_receipt(RECEIPT.to_json(key)) == RECEIPT, "the seal holds without the key"


def test_the_seal_is_of_everything_in_it():
    seals = {
        RECEIPT.seal,
        replace(RECEIPT, verified=True).seal,
        replace(RECEIPT, written=()).seal,
        replace(RECEIPT, format=1).seal,
    }
    assert len(seals) == 4


@pytest.mark.parametrize("name", ["tensor_id", "at", "versions_lost", "reason"])
def test_a_change_is_told(name):
    said = json.loads(RECEIPT.to_json())
    said["receipt"][name] = "another"
    with pytest.raises(tl.CorruptDataError, match="its seal does not hold"):
        verify_receipt(json.dumps(said))


def test_a_forger_who_makes_the_seal_anew_has_no_key():
    forged = replace(RECEIPT, verified=True, reason="")
    assert verify_receipt(forged.to_json()).verified
    for text in (forged.to_json(), forged.to_json(b"guess")):
        with pytest.raises(tl.CorruptDataError, match="not signed with this key, or was changed"):
            verify_receipt(text, b"secret")


def test_an_empty_key_signs_nothing():
    with pytest.raises(tl.InvalidOptionError, match="the key is empty, so anybody could sign"):
        RECEIPT.to_json(b"")
    with pytest.raises(tl.InvalidOptionError, match="the key is empty"):
        verify_receipt(RECEIPT.to_json(), b"")


@pytest.mark.parametrize("signature", [None, 5, "é", "\ud800"])
def test_a_signature_that_is_none(signature):
    said = json.loads(RECEIPT.to_json(b"secret")) | {"signature": signature}
    assert verify_receipt(json.dumps(said)) == RECEIPT
    with pytest.raises(tl.CorruptDataError, match="not signed with this key"):
        verify_receipt(json.dumps(said), b"secret")


@pytest.mark.parametrize("key", ["secret", 5])
def test_a_key_that_is_no_bytes(key):
    with pytest.raises(tl.InvalidOptionError, match=r"the key is of type .*; give bytes"):
        RECEIPT.to_json(key)
    with pytest.raises(tl.InvalidOptionError, match=r"the key is of type .*; give bytes"):
        tl.verify_receipt(RECEIPT.to_json(b"secret"), key)


ADDED = {
    2: {"written": ()},
    3: {"digest_before": None, "digest_after": None, "bytes_replaced": 0, "bytes_written": 0, "bytes_hashed": 0},
    4: {"samples": None},
}  # fmt: skip


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_one_of_an_earlier_format_has_nothing_of_those_after_it(number):
    later = {k: v for since, names in ADDED.items() if since > number for k, v in names.items()}
    old = replace(replace(RECEIPT, samples="3, 7-9"), format=number, **later)
    names = json.loads(old.to_json())["receipt"].keys()
    assert names == {field.name for field in fields(PurgeReceipt)} - later.keys()
    assert verify_receipt(old.to_json(b"k"), b"k") == old


def test_the_seal_holds_whatever_the_order_and_spacing_of_names():
    """Other programs write JSON in ways of their own."""
    said = json.loads(RECEIPT.to_json(b"k"))
    said["receipt"] = dict(reversed(said["receipt"].items()))
    assert verify_receipt(json.dumps(said), b"k") == RECEIPT


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"receipt": {"format": 2}, "seal": ""}', "null", "[" * 10**5],
    ids=range(7),
)
def test_what_is_no_receipt(text):
    with pytest.raises(tl.InvalidOptionError, match="the text is no receipt of a purge"):
        verify_receipt(text)


def test_what_a_receipt_lacks_is_named():
    said = json.loads(RECEIPT.to_json())
    del said["seal"]
    with pytest.raises(
        tl.InvalidOptionError, match="no receipt of a purge: it has no 'seal'; give"
    ):
        verify_receipt(json.dumps(said))


def test_the_documentation_names_the_format_of_new_receipts():
    page = (DOCS / "compliance.md").read_text("utf-8")
    assert f"Receipts have format {RECEIPT.format}," in page


def test_one_of_a_later_format():
    said = json.loads(RECEIPT.to_json())
    said["receipt"]["format"] = 5
    with pytest.raises(
        tl.InvalidOptionError, match=r"format 5, .* reads formats 1 to 4; use a newer"
    ):
        verify_receipt(json.dumps(said))


def test_as_people_read_it():
    text = str(RECEIPT)
    assert text.startswith("purge of tensor 'faces' [user=42] from /data/lake")
    assert "1 files deleted (20 bytes), 1 pending" in text
    assert "pending until 2026-04-08T00:00:00+00:00: c.parquet" in text
    assert "cannot be certified: d.parquet: it is torn" in text
    assert f"digest before {'ab' * 32}\ndigest after {'cd' * 32}\n" in text
    for name in ("deleted", "pending", "uncertified"):
        alone = {other: () for other in ("deleted", "pending", "uncertified") if other != name}
        assert "no file holds anything of it" not in str(replace(RECEIPT, **alone)), name
    assert text.endswith("NOT verified: 1 files are kept by the retention")
    clean = replace(RECEIPT, deleted=(), pending=(), uncertified=(), verified=True, dry_run=True)
    assert str(clean).startswith("dry run: ")
    assert "no file holds anything of it" in str(clean)
    assert str(clean).endswith("\nverified")
    for samples, said in (("3, 7-9", "samples 3, 7-9 from"), ("", "samples none from")):
        assert str(replace(RECEIPT, samples=samples)).startswith(f"purge of {said} /data/lake")


def test_ranges():
    assert ranges_text([]) == ""
    assert ranges_text([7]) == "7"
    assert ranges_text([9, 1, 3, 2, 8]) == "1-3, 8-9"
