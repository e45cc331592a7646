"""Ranges on a local disk: kept, checked, bounded, shared."""

from tensorlake_spark.loader.caching.range_cache import RangeCache


def key(number, size):
    return ("s3://bucket/table", "part-0.parquet", number, size)


def test_a_range_is_fetched_once(tmp_path):
    cache, calls = RangeCache(tmp_path / "cache", 10_000), []

    def fetch():
        calls.append(1)
        return b"x" * 100

    for _ in range(3):
        assert bytes(cache.get(key(0, 100), fetch)) == b"x" * 100
    assert (len(calls), cache.hits, cache.misses) == (1, 2, 1)


def test_what_was_not_used_for_longest_goes(tmp_path):
    cache = RangeCache(tmp_path / "cache", 1000)
    for number in range(6):
        cache.get(key(number, 200), lambda: bytes(200))
        cache.get(key(0, 200), lambda: bytes(200))
    misses = cache.misses
    cache.get(key(0, 200), lambda: bytes(200))
    assert cache.misses == misses
    cache.get(key(1, 200), lambda: bytes(200))
    assert cache.misses == misses + 1
    assert (
        sum(f.stat().st_size for f in (tmp_path / "cache/ranges").rglob("*") if f.is_file()) <= 1000
    )


def test_a_wrong_checksum_is_fetched_again(tmp_path):
    cache = RangeCache(tmp_path / "cache", 10_000)
    cache.get(key(0, 100), lambda: b"x" * 100)
    (file,) = [f for f in (tmp_path / "cache/ranges").rglob("*") if f.is_file()]
    file.write_bytes(file.read_bytes()[:-1] + b"y")
    assert bytes(cache.get(key(0, 100), lambda: b"x" * 100)) == b"x" * 100
    assert (cache.wrong, cache.misses) == (1, 2)
