"""Bounds of requests, parsed once and told to both clients."""

from dataclasses import asdict

import pytest

from tensorlake_spark.delta.store.timeouts import NAMES, Timeouts
from tensorlake_spark.errors import InvalidOptionError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("500ms", 0.5), ("2m", 120), ("1h 30min", 5400), ("1.5 sec", 1.5), ("2 Minutes", 120), ("1day", 86400)],
)  # fmt: skip
def test_times_are_read(text, seconds):
    assert Timeouts.of({"timeout": text}).timeout == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "30", "s", "30x", "0s", "2days", "-1s", "1s later", "30 s s"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(InvalidOptionError, match="is no time from 1ms to 1day"):
        Timeouts.of({"connect_timeout": text})


@pytest.mark.parametrize("text", ["-1", "1.5", "many", "10000"])
def test_what_is_no_number_of_retries_is_refused(text):
    with pytest.raises(InvalidOptionError, match="is not a number of retries"):
        Timeouts.of({"max_retries": text})


@pytest.mark.parametrize("text", ["1", "0", "-2", "x", "101", "nan"])
def test_what_is_no_factor_is_refused(text):
    with pytest.raises(InvalidOptionError, match="is no factor above 1"):
        Timeouts.of({"backoff_config.base": text})


def test_waits_must_not_shrink():
    with pytest.raises(InvalidOptionError, match=r"max_backoff=1s is less than .*init_backoff=2s"):
        Timeouts.of({"init_backoff": "2s", "max_backoff": "1s"})


def test_what_is_told_says_the_same_by_the_first_name_of_each_option():
    given = {"AWS_TIMEOUT": "7s", "Max_Retries": "3", "backoff.base": "1.5", "AWS_REGION": "here"}
    found = Timeouts.of(given)
    told = found.told(given)
    again = Timeouts.of(told)
    assert asdict(again) == pytest.approx(asdict(found))
    assert told.keys() == {name for name, *_ in NAMES.values()} | {"AWS_REGION"}
    assert (found.timeout, found.max_retries, found.base) == (7, 3, 1.5)


def test_arrow_gets_whole_seconds():
    assert Timeouts(timeout=0.2).arrow()["request_timeout"] == 1
