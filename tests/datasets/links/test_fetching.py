"""Many links at once: in order, named where they fail, with bounded memory, and no work is left behind."""

import pickle
import threading

import pyarrow as pa
import pytest

from tensorlake_spark.datasets.links import fetching
from tensorlake_spark.datasets.links.fetching import (
    STORAGE,
    describe_links,
    fetch_link,
    fetched,
    range_reader,
    read_link,
)
from tensorlake_spark.datasets.links.link_rules import LinkRules
from tensorlake_spark.errors import (
    ChangedLinkError,
    ForbiddenLinkError,
    InvalidLinkError,
    InvalidOptionError,
    MissingLinkError,
)

RULES = LinkRules()


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / f"{k}.bin" for k in range(300)]
    for k, path in enumerate(paths):
        path.write_bytes(k.to_bytes(2, "little") * (k + 1))
    return paths


def stored(paths):
    facts = describe_links(paths, RULES)
    rows = [f and {"url": f.url, "size": f.size, "etag": f.etag} for f in facts]
    return pa.array(rows, STORAGE)


def test_many_come_in_order_and_nulls_stay_nulls(files):
    links = [None, *files, None]
    batch = stored(links)
    assert batch.null_count == 2
    expected = [link and link.read_bytes() for link in links]
    assert list(fetched(batch, RULES)) == expected
    assert list(fetched(pa.chunked_array([batch[:7], batch[7:]]), RULES)) == expected
    assert list(fetched(iter(batch.to_pylist()), RULES)) == expected
    assert list(fetched(batch[:0], RULES)) == []


def test_kinds_are_mixed(files, web, rules):
    batch = stored(files[:2]).to_pylist()
    facts = next(describe_links([web.url("/a.jpg")], rules))
    batch.insert(1, {"url": facts.url, "size": facts.size, "etag": facts.etag})
    found = list(fetched(batch, rules))
    assert found == [files[0].read_bytes(), web.pages["/a.jpg"], files[1].read_bytes()]


def test_an_error_names_column_and_sample_after_those_before_it(files):
    batch = stored(files)
    files[250].write_bytes(b"other")
    files[251].unlink()
    got = []
    with pytest.raises(ChangedLinkError, match=r"^column 'image', sample 1250: "):
        for data in fetched(batch, RULES, "image", 1000):
            got.append(data)
    assert len(got) == 250
    with pytest.raises(MissingLinkError, match=r"^column 'link', sample 0: "):
        list(fetched(batch[251:], RULES))
    with pytest.raises(InvalidLinkError, match=r"^column 'image', sample 3: .*relative"):
        list(describe_links([*files[:2], "a.jpg"], RULES, "image", 1))


def test_memory_is_bounded_by_what_is_stored(files, monkeypatch):
    batch = stored(files)
    sizes = batch.field("size").to_pylist()
    monkeypatch.setattr(fetching, "AT_ONCE", 2000)
    lock, begun = threading.Lock(), []

    def counted(url, *arguments):
        with lock:
            begun.append(url)
        return fetch_link(url, *arguments)

    monkeypatch.setattr(fetching, "fetch_link", counted)
    for taken, _ in enumerate(fetched(batch, RULES)):
        with lock:
            ahead = len(begun)
        assert sum(sizes[taken:ahead]) <= 2000 or ahead == taken + 1
    assert len(begun) == 300


def test_whoever_stops_leaves_no_work_behind(files, monkeypatch):
    begun = []
    monkeypatch.setattr(fetching, "fetch_link", lambda url, *_: begun.append(url) or b"")
    running = fetched(stored(files), RULES)
    next(running)
    running.close()
    assert len(begun) <= 1 + 2 * fetching.IO_THREADS
    count = len(begun)
    list(fetched(stored(files[:1]), RULES))
    assert len(begun) == count + 1


def test_a_reader_of_ranges(files):
    (row,) = stored(files[299:]).to_pylist()
    read = range_reader(row["url"], row["size"], row["etag"], RULES, "sample 1")
    data = files[299].read_bytes()
    assert read(0, 10) + read(10, 1000) == data
    files[299].write_bytes(b"other")
    with pytest.raises(ChangedLinkError, match=r"^sample 1: "):
        read(0, 10)


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (3, 2)])
def test_no_range(files, start, stop):
    with pytest.raises(ValueError, match="no range"):
        read_link(str(files[0]), None, None, RULES, start, stop)


def test_links_that_have_rotted_can_be_gone_on_without(files, web, rules):
    batch = stored(files[:4]).to_pylist()
    files[1].unlink()
    files[2].write_bytes(b"other")
    batch += [
        {"url": url, "size": None, "etag": None} for url in ("https://elsewhere.org/a", "a.jpg")
    ]
    found = list(fetched(batch, rules, "image", 10, errors="return"))
    assert found[0] == files[0].read_bytes()
    assert found[3] == files[3].read_bytes()
    kinds = [MissingLinkError, ChangedLinkError, ForbiddenLinkError, InvalidLinkError]
    for number, kind in zip((1, 2, 4, 5), kinds):
        assert type(found[number]) is kind
        assert str(found[number]).startswith(f"column 'image', sample {10 + number}: ")
    facts = list(describe_links([files[0], files[1], "a.jpg", None], RULES, errors="return"))
    assert [type(one).__name__ for one in facts] == [
        "LinkFacts", "MissingLinkError", "InvalidLinkError", "NoneType",
    ]  # fmt: skip
    with pytest.raises(InvalidOptionError, match="neither"):
        fetched(batch, rules, errors="ignore")


def test_rules_travel_to_executors():
    rules = LinkRules(allow_http=["*.example.org", "10.0.0.0/8"], tokens={"a.example.org": "A"})
    again = pickle.loads(pickle.dumps(rules))
    assert again == rules
    again.check_host("https://a.example.org/")
    assert again.allows_address("10.0.0.1", 80)
