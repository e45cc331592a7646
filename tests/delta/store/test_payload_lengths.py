"""Lengths of payloads in a footer: what is packed comes back, and what is damaged is not believed."""

import base64
import zlib

import numpy as np
import pytest

from tensorlake_spark.delta.store.payload_lengths import (
    KEY,
    NULL,
    ends_of,
    packed_lengths,
    unpacked_lengths,
)


def said(text):
    return {f"{KEY}image.data".encode(): text.encode()}


@pytest.mark.parametrize("lengths", [[], [0], [1, 70_000, NULL, 16_000], [*range(5_000)]])
def test_lengths_come_back(lengths):
    text = packed_lengths(np.array(lengths, np.int64))
    found = unpacked_lengths(said(text), "image.data", len(lengths))
    assert found.tolist() == lengths
    assert unpacked_lengths(said(text), "image.mask", len(lengths)) is None
    assert unpacked_lengths(said(text), "image.data", len(lengths) + 1) is None


def test_lengths_of_photographs_take_about_two_bytes_each():
    lengths = np.random.default_rng(0).normal(16_000, 3_000, 8_000).astype(np.int64)
    assert len(packed_lengths(lengths)) < 2.8 * len(lengths)


@pytest.mark.parametrize(
    "text",
    ["", "#", base64.b64encode(b"no zlib").decode(), base64.b64encode(zlib.compress(bytes(1 << 24))).decode()],
    ids=["empty", "no base64", "no zlib", "too long"],
)  # fmt: skip
def test_what_is_damaged_is_not_believed(text):
    assert unpacked_lengths(said(text), "image.data", 3) is None
    assert unpacked_lengths(None, "image.data", 3) is None


def test_a_row_group_that_does_not_fit_its_lengths_is_read_as_a_whole():
    lengths = np.array([3, 5], np.uint32)
    assert ends_of(lengths, 16 + 30).tolist() == [37, 46]
    assert ends_of(lengths, 16) is None  # no room for a header
    assert ends_of(lengths, 16 + 1000) is None  # several pages
    assert ends_of(np.array([3, NULL], np.uint32), 46) is None
    assert ends_of(np.zeros(0, np.uint32), 46) is None
