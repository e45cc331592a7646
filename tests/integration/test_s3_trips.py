"""How often a read on S3 waits for an answer, and how much it asks for; and that the log is read aright."""

import importlib
import multiprocessing
import sys
import uuid
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from deltalake import DeltaTable, write_deltalake
from places import TESTS
from stored import forget

import tensorlake_spark as tl
from tensorlake_spark.datasets.links.fetching import describe_link, fetch_link
from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log.replaying import remote_log as mirror
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples import sample_files, sample_values
from tensorlake_spark.delta.store import payload_lengths
from tensorlake_spark.delta.store.storage import Storage

DELAY_S = 0.2  # longer than it takes a busy machine to send what is sent at one time


@pytest.fixture(scope="module")
def roads():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TESTS / "benchmarks"))
        yield importlib.import_module("s3_road")
        sys.modules.pop("s3_road")


@pytest.fixture(scope="module")
def far(s3, roads):
    """A road that is long."""
    with roads.S3Road(s3.port, DELAY_S) as road:
        yield road


@pytest.fixture
def url():
    return f"s3://bucket/{uuid.uuid4()}/lake"


@pytest.fixture
def options(s3, far):
    return {**s3.options, "AWS_ENDPOINT_URL": far.endpoint}


@pytest.fixture
def seen(far, roads):
    """Call something; return what it returns, the round trips, the requests, and the bytes that came."""

    def run(act):
        far.requests()
        out = act()
        found = far.requests()
        return out, roads.round_trips(found), found, sum(r.nbytes for r in found)

    return run


def images(count):
    return np.random.default_rng(0).integers(0, 256, (count, 3, 128, 128), np.uint8)


def rides():
    rng = np.random.default_rng(0)
    coords = np.unique(rng.integers(0, [[30], [24], [200], [300]], (4, 60_000)), axis=1)
    return tl.SparseTensor(coords, np.ones(coords.shape[1]), (30, 24, 200, 300))


KINDS = {"dense": (images(64), np.s_[30:40]), "sparse": (rides(), np.s_[17])}


def same(got, want):
    return got.equals(want) if isinstance(want, tl.SparseTensor) else np.array_equal(got, want)


@pytest.mark.parametrize(
    ("kind", "checkpoint"), [("dense", False), ("dense", True), ("sparse", True)]
)
def test_cold_warm_and_renewed(s3, options, seen, url, kind, checkpoint):
    x, key = KINDS[kind]
    tl.open(url, storage_options=s3.options).write("x", x)
    if checkpoint:
        DeltaTable(url, storage_options=s3.options).create_checkpoint()
    forget()

    lake, trips, _, _ = seen(lambda: tl.open(url, storage_options=options))
    assert trips <= 2, "which the last checkpoint is; the checkpoint and the commits after it"
    ref, more, _, _ = seen(lambda: lake["x"])
    assert more <= 2, "whether there is a newer version; footer and metadata row"
    got, last, asked, nbytes = seen(lambda: ref[key])
    assert same(got, x[key])
    assert last == 1
    assert trips + more + last <= 6
    plan = ref.explain(key)
    assert all(r.method == "GET" and r.span for r in asked), "nobody asks for what the log tells"
    assert len(asked) <= 1 + plan.n_bytes // (1 << 20) + plan.n_row_groups
    assert nbytes <= 1.1 * plan.n_bytes + (256 << 10)

    pinned = tl.open(url, storage_options=options, version=lake.version)["x"]
    got, trips, asked, _ = seen(lambda: pinned[key])
    assert (trips, same(got, x[key])) == (1, True)
    forget()
    got, trips, again, _ = seen(lambda: pinned[key])
    assert (trips, same(got, x[key])) == (2, True), "the footer, then the rows"
    assert len(again) == len(asked) + 1

    got, trips, _, _ = seen(lambda: lake["x"][key])
    assert (trips, same(got, x[key])) == (2, True)
    tl.open(url, storage_options=s3.options).write("y", np.zeros(3))
    got, trips, _, _ = seen(lambda: lake["x"][key])
    assert same(got, x[key])
    assert trips <= 4, "there is a newer version; its log, twice; the rows"


def test_bytes_of_tiles_that_explain_tells_are_those_that_come(s3, options, seen, url):
    rng = np.random.default_rng(0)
    scans = [rng.integers(0, 256, (2000, 1500), np.uint8) for _ in range(2)]
    schema = {"scan": tl.types.Tensor("uint8", (None, None))}
    made = tl.dataset(url, schema, tile_bytes=64 << 10, storage_options=s3.options)
    made.extend({"scan": scans})
    forget()
    ds = tl.dataset(url, create=False, storage_options=options)
    view = ds.query("SELECT scan[1500:1600, :100] AS corner FROM dataset")
    told = view.explain().selected_bytes  # for which footers are read
    found, _, _, nbytes = seen(lambda: view["corner"])
    assert np.array_equal(found, [scan[1500:1600, :100] for scan in scans])
    assert told < scans[0].nbytes
    assert abs(nbytes - told) <= 0.05 * told + (16 << 10)


def test_many_files_are_asked_for_at_once(s3, options, seen, url):
    x = images(6)
    lake = tl.open(url, storage_options=s3.options)
    for image in x:
        lake.write("x", image[None], mode="append")
    forget()
    ref = tl.open(url, storage_options=options)["x"]
    got, trips, asked, _ = seen(lambda: ref[:])
    assert np.array_equal(got, x)
    assert trips <= 2, "all footers, then all rows"
    assert len(asked) <= 12
    got, trips, asked, _ = seen(lambda: ref[:])
    assert (trips, len(asked)) == (1, 6)


def test_a_catalog_asks_for_many_files_at_once(s3, options, seen, url):
    """Of a tensor's own files for the newest alone."""
    lake = tl.open(url, storage_options=s3.options)
    for i in range(8):
        lake.write(f"t/{i}", np.zeros(i + 1))
        lake.write("x", np.zeros(1), mode="append")
    forget()
    snapshot = Snapshot.open(Storage(url, options))
    found, trips, asked, _ = seen(
        lambda: {m.spec.id: m.spec.shape for m in catalog.metas(snapshot)}
    )
    assert found == {**{f"t/{i}": (i + 1,) for i in range(8)}, "x": (8,)}
    assert trips == 1
    assert len(asked) == 9


def test_a_first_batch_asks_for_all_footers_at_once(s3, options, seen, url):
    ds = tl.dataset(url, {"x": "int64"}, storage_options=s3.options)
    for first in range(0, 60, 10):
        ds.extend({"x": np.arange(first, first + 10)})
    loader = tl.dataset(url, storage_options=options, create=False).loader(60)
    batch, trips, asked, _ = seen(lambda: next(iter(loader)))
    assert batch["x"].tolist() == [*range(60)]
    assert trips <= 3, "whether there is a newer version; all footers; all row groups"
    assert len(asked) <= 1 + 2 * 6


def test_footers_for_other_processes_come_at_once(s3, options, seen, url, monkeypatch):
    """Also of more files than are kept."""
    monkeypatch.setattr(sample_files, "KEPT_FILES", 3)
    ds = tl.dataset(url, {"x": "int64"}, storage_options=s3.options)
    for first in range(0, 60, 10):
        ds.extend({"x": np.arange(first, first + 10)})
    files = tl.dataset(url, storage_options=options, create=False).stored.files
    found, trips, asked, _ = seen(lambda: files.opened(range(6)))
    assert {number: footer.num_rows for number, footer in found.items()} == dict.fromkeys(
        range(6), 10
    )
    assert (trips, len(asked)) == (1, 6)


def test_numbers_of_samples_out_of_order_come_at_once(s3, options, seen, url):
    ds = tl.dataset(url, {"x": "int64"}, storage_options=s3.options)
    ds.extend({"x": np.arange(10)})
    for first in range(-60, 0, 10):
        rows = pa.table({"sid": np.arange(first, first + 10), "x": np.arange(first, first + 10)})
        write_deltalake(url, rows, mode="append", storage_options=s3.options)
    stored = tl.dataset(url, storage_options=options, create=False).stored
    sids, trips, asked, _ = seen(lambda: stored.sids)
    assert sids.tolist() == [*range(-60, 10)]
    assert (trips, len(asked)) == (2, 2 * 6), "all footers; the numbers of all files but ours"


def test_a_condition_looks_at_many_files_at_once(url, options, seen, s3):
    """Each file took two trips of its own, and those that the log rules out too; and again the next time."""
    ds = tl.dataset(url, {"size": "int32", "name": "string"}, storage_options=s3.options)
    for first in range(0, 120, 10):
        numbers = np.arange(first, first + 10)
        ds.extend({"size": numbers, "name": [f"n{n:03}" for n in numbers]})
    far = tl.dataset(url, storage_options=options)
    assert len(far) == 120
    found, trips, requests, _ = seen(lambda: far.positions_where("size = 17"))
    assert (found.tolist(), len(requests)) == ([17], 2), "a footer and a column"
    found, trips, requests, _ = seen(lambda: far.positions_where("size > 15"))
    assert found.tolist() == [*range(16, 120)]
    assert trips <= 3
    assert len(requests) <= 2 * 11
    for act in (
        lambda: far.positions_where("size > 20"),
        lambda: far.explain("size > 15 AND size < 99", ["name"]),
    ):
        assert seen(act)[1] == 0, "footers and small columns are known now"


def test_row_groups_beside_each_other_share_requests(s3, options, seen, url):
    x = rides()
    x = tl.SparseTensor(x.coords, np.random.default_rng(0).random(x.nnz), x.shape)
    tl.open(url, storage_options=s3.options).write("x", x)
    ref = tl.open(url, storage_options=options)["x"]
    plan = ref.explain()
    got, trips, asked, nbytes = seen(lambda: ref[:])
    assert (got.equals(x), trips) == (True, 1)
    assert nbytes <= 1.1 * plan.n_bytes
    assert plan.n_row_groups > len(asked)


def test_tensors_that_share_row_groups(s3, options, seen, url):
    """Which rows are whose stands in columns of its own, which are fetched with the others."""
    lake = tl.open(url, storage_options=s3.options)
    dense = {f"d/{i}": np.full((4, 4), i + 1.0) for i in range(5)}
    sparse = {f"s/{i}": tl.SparseTensor.from_dense(np.eye(9) * (i + 1)) for i in range(5)}
    for name, data in (dense | sparse).items():
        lake.write(name, data, layout="bsgs" if name in sparse else "ftsf")
    lake.optimize()
    forget()
    lake = tl.open(url, storage_options=options)
    assert {lake[name].explain().n_files for name in lake} == {1}
    for name, data in dense.items():
        got, trips, _, _ = seen(partial(lake[name].__getitem__, np.s_[1:3]))
        assert (got.tolist(), trips) == (data[1:3].tolist(), 1)
    for name, data in sparse.items():
        assert lake[name][2:].equals(data[2:])


def test_a_write_takes_few_round_trips(s3, options, seen, url):
    """deltalake read the log anew before and after each commit: 23 for a write, 19 for samples."""
    x = images(1)
    lake = tl.open(url, storage_options=options)
    _, trips, _, _ = seen(lambda: lake.write("a", x))
    assert trips <= 14, (
        "no table, no log; the first commit; the log; a file; its commit; what it has made"
    )
    _, trips, asked, _ = seen(lambda: lake.write("b", x))
    assert trips <= 7, "two looks at the log; a file; a look; the commit; another look; the footer"
    assert len(asked) <= 14
    _, trips, asked, _ = seen(lambda: lake.write("a", x, mode="append"))
    assert trips <= 8, "and the footer of the rows before"
    assert [line.method for line in asked].count("PUT") == 2, "no upload in parts"
    _, trips, _, _ = seen(lambda: lake.write("a", x, mode="overwrite"))
    assert trips <= 9
    assert np.array_equal(tl.open(url, storage_options=s3.options)["a"][:], x)
    assert versions(s3, url) == 4


def test_samples_are_added_in_few_round_trips(s3, options, seen, url):
    ds = tl.dataset(url, {"n": "int32"}, storage_options=options)
    ds.extend({"n": [1]})
    for count in range(2, 5):
        _, trips, asked, _ = seen(lambda count=count: ds.extend({"n": [count]}))
        assert trips <= 4, "a file; a look at the log; the commit; another look"
        assert len(asked) <= 8
    assert tl.dataset(url, storage_options=s3.options)["n"][:].tolist() == [1, 2, 3, 4]


def test_a_checkpoint_is_made_every_ten_commits(s3, url):
    """Whoever opens the table waits for all commits since; deltalake made them so far."""
    lake = tl.open(url, storage_options=s3.options)
    commit(lake, 21)
    found = s3.filesystem().get_file_info(
        pafs.FileSelector(f"{url.removeprefix('s3://')}/_delta_log")
    )
    made = sorted(info.base_name for info in found if "checkpoint.parquet" in info.base_name)
    assert made == [f"{version:020}.checkpoint.parquet" for version in (9, 19)]
    assert versions(s3, url) == 21


def _read(ref, key, out):
    out.put(ref[key].sum())


def test_a_forked_child_reads(s3, url):
    """deltalake cannot work there."""
    x = images(4)
    ref = tl.open(url, storage_options=s3.options).write("x", x)
    forget()
    context = multiprocessing.get_context("fork")
    out = context.SimpleQueue()
    child = context.Process(target=_read, args=(ref, np.s_[1:3], out))
    child.start()
    child.join(120)
    assert child.exitcode == 0
    assert out.get() == x[1:3].sum()


def _refused(lake, out):
    try:
        commit(lake, 1)
    except tl.InvalidOptionError as error:
        out.put(str(error))
    else:
        out.put("written")


def test_a_forked_child_is_refused_before_it_writes(s3, url):
    """What its parent knows of the log would do for a commit, but not for what follows one."""
    lake = tl.open(url, storage_options=s3.options)
    commit(lake, 3)
    context = multiprocessing.get_context("fork")
    out = context.SimpleQueue()
    child = context.Process(target=_refused, args=(lake, out))
    child.start()
    child.join(120)
    assert child.exitcode == 0
    assert "was forked" in out.get()
    assert lake.version == 3


def commit(lake, count):
    for _ in range(count):
        lake.write("n", np.zeros(1, np.int8), mode="append")


def drop(s3, url, name):
    s3.filesystem().delete_file(f"{url.removeprefix('s3://')}/_delta_log/{name}")


def get(s3, url, name):
    with s3.filesystem().open_input_stream(
        f"{url.removeprefix('s3://')}/_delta_log/{name}"
    ) as file:
        return file.read()


def put(s3, url, name, data):
    with s3.filesystem().open_output_stream(
        f"{url.removeprefix('s3://')}/_delta_log/{name}"
    ) as file:
        file.write(data)


def versions(s3, url):
    """Open a table by its log as it was brought here, and by deltalake; they have to agree."""
    brought = Snapshot.open(Storage(url, s3.options))
    table = DeltaTable(url, storage_options=s3.options)
    assert brought.version == table.version()
    assert sorted(brought.files.path) == sorted(table.get_add_actions()["path"].to_pylist())
    return brought.version


def test_the_log_is_brought_whatever_its_checkpoints(s3, url):
    lake = tl.open(url, storage_options=s3.options)
    storage = Storage(url, s3.options)
    commit(lake, 13)  # and more than are asked for at once
    assert mirror.bring(storage) is not None
    assert versions(s3, url) == 13
    put(s3, url, "_last_checkpoint", b'{"version": 1e400, "sizeInBytes": []}')
    assert mirror.bring(storage) is None
    put(s3, url, "_last_checkpoint", b"[1]")
    assert mirror.bring(storage) is None
    DeltaTable(url, storage_options=s3.options).create_checkpoint()
    assert mirror.bring(storage) is not None
    assert versions(s3, url) == 13
    commit(lake, 1)
    assert versions(s3, url) == 14
    assert Snapshot.open(storage, 13).version == 13
    assert mirror.bring(storage, 3) is not None, "it lies before the checkpoint"
    early = DeltaTable(url, 3, storage_options=s3.options)
    assert {*Snapshot.open(storage, 3).files.path} == {*early.get_add_actions()["path"].to_pylist()}
    gone = get(s3, url, f"{2:020}.json")
    drop(s3, url, f"{2:020}.json")
    assert mirror.bring(storage, 3) is None
    put(s3, url, f"{2:020}.json", gone)
    assert Snapshot.open(storage, 3).version == 3
    with pytest.raises(tl.InvalidOptionError, match="0 to 14"):
        Snapshot.open(storage, 15)


def test_a_checkpoint_that_may_be_an_old_one_is_not_believed(s3, url):
    """The log was tidied up to a later checkpoint, of which its writer could not tell."""
    lake = tl.open(url, storage_options=s3.options)
    storage = Storage(url, s3.options)
    commit(lake, 2)
    table = DeltaTable(url, storage_options=s3.options)
    table.create_checkpoint()
    with s3.filesystem().open_input_stream(
        f"{url.removeprefix('s3://')}/_delta_log/_last_checkpoint"
    ) as file:
        old = file.read()
    commit(lake, 2)
    DeltaTable(url, storage_options=s3.options).create_checkpoint()
    put(s3, url, "_last_checkpoint", old)
    for version in range(4):
        drop(s3, url, f"{version:020}.json")
    assert mirror.bring(storage) is None
    assert versions(s3, url) == 4


def test_nothing_stays_of_a_log_that_was_brought(s3, url, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    lake = tl.open(url, storage_options=s3.options)
    lake.write("x", images(2))
    tl.open(url, storage_options=s3.options)["x"][0]
    assert not list(tmp_path.iterdir())


def noise(count, seed=0):
    """Files that a column of bytes takes, of 10 to 30 KB."""
    rng = np.random.default_rng(seed)
    return [rng.bytes(int(size)) for size in rng.integers(10_000, 30_000, count)]


@pytest.fixture
def photos(s3, url):
    """A dataset of some row groups on S3: its place, and what it holds."""
    files = noise(400)
    ds = tl.dataset(url, {"photo": "bytes", "n": "int32"}, storage_options=s3.options)
    ds.extend({"photo": files, "n": range(400)})
    return url, files


def test_a_sample_is_read_without_its_row_group(photos, options, seen):
    url, files = photos
    forget()
    ds, trips, _, _ = seen(lambda: tl.dataset(url, storage_options=options))
    assert trips <= 2, "as many as for a lake"
    found, trips, _, nbytes = seen(lambda: ds["photo"].encoded(317))
    assert found == files[317]
    assert trips <= 3
    assert nbytes < (256 << 10)  # the footer, with what is near it
    for number in (5, 399, 200):
        found, trips, asked, nbytes = seen(lambda number=number: ds["photo"].encoded(number))
        assert found == files[number]
        assert (trips, len(asked)) == (1, 1)
        assert nbytes < len(files[number]) + 4096
    some = [7, 390, 120, 7]
    found, trips, asked, nbytes = seen(lambda: ds["photo"][some])
    assert found == [files[number] for number in some]
    assert trips == 1
    assert nbytes < 2 * sum(len(files[number]) for number in some)
    found, trips, _, _ = seen(lambda: ds["photo"][:])  # row groups, all at once
    assert found == files
    assert trips <= 2


def test_lengths_of_payloads_that_are_not_true_are_noticed(photos, s3, monkeypatch):
    url, files = photos
    read = payload_lengths.unpacked_lengths

    def turned(said, path, count):
        return read(said, path, count)[::-1].copy()

    monkeypatch.setattr(sample_values, "unpacked_lengths", turned)
    ds = tl.dataset(url, storage_options=s3.options)
    for number in (0, 317, 399):
        assert ds["photo"].encoded(number) == files[number]
    assert ds["photo"][[5, 250]] == [files[5], files[250]]


def test_samples_that_are_null_or_small_are_read_with_their_row_group(s3, url):
    files = [None if number % 50 == 3 else data for number, data in enumerate(noise(200))]
    tiny = [bytes([number]) * 7 for number in range(200)]
    columns = {"photo": files, "tiny": tiny}
    ds = tl.dataset(url, {"photo": "bytes", "tiny": "bytes"}, storage_options=s3.options)
    ds.extend(columns)
    ds = tl.dataset(url, storage_options=s3.options)
    for number in (3, 4, 199):
        for name, values in columns.items():
            assert ds[name].encoded(number) == values[number]
            assert ds[name][number] == values[number]


def test_values_of_every_kind_are_read_in_two_round_trips_once_the_table_is_known(
    s3, options, seen, url
):
    """Ragged, in tiles, and apart: the row says where the rest is."""
    rng = np.random.default_rng(0)
    values = {
        "ragged": [rng.random((100 + n, 3)).astype("f4") for n in range(60)],
        "tiled": [rng.integers(0, 255, (300, 300), np.uint8) for _ in range(60)],
        "apart": [rng.integers(0, 255, 10_000, np.uint8) for _ in range(60)],
    }
    schema = {
        "ragged": tl.types.Tensor("float32", (None, 3)),
        "tiled": tl.types.Tensor("uint8", (None, None)),
        "apart": tl.types.Tensor("uint8", (None,), apart=True),
    }
    ds = tl.dataset(url, schema, storage_options=s3.options, tile_bytes=1 << 16)
    ds.extend(values)
    ds = tl.dataset(url, storage_options=options)
    for name, wanted in values.items():
        assert np.array_equal(ds[name][40], wanted[40])
        got, trips, _, _ = seen(lambda name=name: ds[name][20])
        assert np.array_equal(got, wanted[20])
        assert trips <= 2, name


@pytest.fixture
def mixed(s3, url):
    """A dataset on S3 whose samples have a part of every kind: its place, and its columns."""
    rng = np.random.default_rng(0)
    photo = tl.types.Image("png")
    columns = {
        "label": np.arange(60),
        "photo": [rng.integers(0, 255, (60, 60, 3), np.uint8) for _ in range(60)],
        "ragged": [rng.random((1000 + n, 3)).astype("f4") for n in range(60)],
        "tiled": [rng.integers(0, 255, (300, 300), np.uint8) for _ in range(60)],
        "apart": [rng.integers(0, 255, 10_000, np.uint8) for _ in range(60)],
        "group/apart": [f"text {n}" for n in range(60)],
        "link": [rng.integers(0, 255, (60, 60, 3), np.uint8) for _ in range(60)],
    }
    schema = {
        "label": "int32",
        "photo": photo,
        "ragged": tl.types.Tensor("float32", (None, 3)),
        "tiled": tl.types.Tensor("uint8", (None, None)),
        "apart": tl.types.Tensor("uint8", (None,), apart=True),
        "group/apart": tl.types.Text(apart=True),
        "link": tl.types.Link(photo),
    }
    links = []
    for number, data in enumerate(photo.encode(columns["link"], "link").field("data").to_pylist()):
        links.append(f"{url}-links/{number}.png")
        with s3.filesystem().open_output_stream(links[-1].removeprefix("s3://")) as file:
            file.write(data)
    ds = tl.dataset(url, schema, storage_options=s3.options, tile_bytes=1 << 16)
    ds.extend({**columns, "link": links})
    forget()
    return url, columns


def test_parts_of_a_sample_are_fetched_side_by_side(mixed, s3, options, seen):
    url, columns = mixed
    links = tl.LinkRules(storage_options=options)
    known = describe_link(f"{url}-links/0.png", links)
    fetch_link(
        known.url, known.size, known.etag, links
    )  # imports boto3, which takes longer than a round trip
    ds = tl.dataset(url, storage_options=options, links=links)

    def right(found, number):
        return all(np.array_equal(found[name], columns[name][number]) for name in columns)

    found, trips, asked, _ = seen(lambda: ds[7])
    assert right(found, 7)
    assert trips <= 7, "the row, which says that there are tiles; their log, their footer, and them"
    assert len(asked) <= 28
    assert not any("/lake/_delta_log/" in one.path for one in asked), "it was read on opening"
    for number in (7, 30, 31):
        found, trips, asked, _ = seen(lambda number=number: ds[number])
        assert right(found, number)
        assert trips <= 1, "all at once"
        assert len(asked) == 5, (
            "photo, ragged, tiles, apart, and the link, whose answer says what it is"
        )
    some = [50, 3, 51]
    found, trips, asked, _ = seen(lambda: ds[some])
    assert all(right({k: v[n] for k, v in found.items()}, some[n]) for n in range(3))
    assert trips <= 3, "as of one; for tiles, what the log says of each sample's"
    found, trips, asked, _ = seen(lambda: ds["link"][20])
    assert np.array_equal(found, columns["link"][20])
    assert (trips, [one.method for one in asked]) == (1, ["GET"])


def test_a_first_part_is_found_without_the_samples_log(mixed, options, seen):
    url, columns = mixed
    for name, most in (("apart", 4), ("tiled", 7), ("group/apart", 3), ("ragged", 2), ("photo", 2)):
        forget()
        ds = tl.dataset(url, storage_options=options)
        found, trips, asked, _ = seen(lambda ds=ds, name=name: ds[name][40])
        assert np.array_equal(found, columns[name][40])
        assert trips <= most
        assert not any("/lake/_delta_log/" in one.path for one in asked)
        found, trips, asked, _ = seen(lambda ds=ds, name=name: ds[name][20])
        assert np.array_equal(found, columns[name][20])
        assert trips <= 1, "what has no bytes in its row is not asked for"


def test_an_early_version_of_an_inner_table_takes_no_more_trips(s3, options, seen, url):
    """Its log has a checkpoint that lies behind the version that belongs to the samples."""
    schema = {"n": "int32", "text": tl.types.Text(apart=True)}
    ds = tl.dataset(url, schema, storage_options=s3.options)
    versions = []
    for number in range(4):
        ds.append({"n": number, "text": f"text {number}"})
        versions.append(ds.version)
    early = versions[1]
    for folder in (url, f"{url}/_columns/text"):
        DeltaTable(folder, storage_options=s3.options).create_checkpoint()
    forget()
    old, trips, _, _ = seen(lambda: tl.dataset(url, storage_options=options, version=early))
    assert trips <= 2
    found, trips, _, _ = seen(lambda: old["text"][1])
    assert (found, len(old)) == ("text 1", 2)
    assert trips <= 4, "the log at once; the footer, numbers of the samples, and the text"


def test_application_transactions_are_those_of_deltalake(s3, url):
    lake = tl.open(url, storage_options=s3.options)
    for checkpoint in (False, True):
        for number in range(3):
            lake.write(f"{number}", np.zeros(number + 1), mode="overwrite")
        if checkpoint:
            DeltaTable(url, storage_options=s3.options).create_checkpoint()
            lake.write("1", np.zeros(7), mode="overwrite")
        storage = Storage(url, s3.options)
        table = DeltaTable(url, storage_options=s3.options)
        known = mirror.bring(storage).transactions
        assert known
        assert {app: table.transaction_version(app) for app in known} == known
        opened = Snapshot.open(storage)
        assert opened.transactions([*known, "none"]) == {**known, "none": None}
        assert all(opened.transaction(app) == number for app, number in known.items())
