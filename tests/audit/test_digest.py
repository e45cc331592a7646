"""The tree of a digest: what it is made of, what does not change it, and how it is kept."""

import hashlib
import pickle
import resource
from pathlib import Path

import numpy as np
import pytest

import tensorlake_spark as tl

pytestmark = pytest.mark.local_disk


@pytest.fixture
def x():
    return np.random.default_rng(0).integers(0, 2**31, (12, 40)).astype("i4")


@pytest.fixture
def full(lake, x):
    """A tensor that grew, two that share a file, and a sparse one."""
    for start in (0, 4, 8):
        lake.write("grown", x[start : start + 4], mode="append", block_shape=(1, 40))
    lake.write("label", np.arange(12), axes=("sample",), attrs={"unit": "K"})
    lake.write("coo", tl.SparseTensor([[1, 2], [3, 4]], [1.0, 2.0], (9, 9)), layout="coo")
    return lake


def raw(node):
    return bytes.fromhex(node.hex)


def sha(kind, *parts):
    return hashlib.sha256(b"TLD1" + kind + b"".join(parts)).hexdigest()


def test_the_digest_of_a_table_is_that_of_its_tensors(full):
    digest = full.digest()
    assert (digest.kind, digest.name, digest.version) == ("table", full.uri, full.version)
    assert (
        [*digest]
        == digest.ids
        == [child.name for child in digest.children]
        == ["coo", "grown", "label"]
    )
    assert digest.hex == sha(b"l", *map(raw, digest.children))
    assert len(digest.hex) == 64


def test_the_digest_of_a_tensor_is_that_of_its_metadata_and_of_its_rows_by_their_digests(full):
    tensor = full.digest("grown")
    meta, *rows = tensor.children
    assert (tensor.kind, tensor.name, meta.kind, meta.name) == (
        "tensor", "grown", "metadata", "grown",
    )  # fmt: skip
    assert {row.name for row in rows} == {f"[{i}:{i + 1}, 0:40]" for i in range(12)}
    assert [raw(row) for row in rows] == sorted(raw(row) for row in rows)
    assert tensor.hex == sha(b"t", *map(raw, tensor.children))
    assert tensor == full.digest()["grown"] == tensor["grown"]
    assert tensor.metadata == meta


def test_files_have_row_groups_and_these_have_rows(full):
    digest = full.digest()
    assert len(digest.files) == 5
    for file in digest.files:
        assert file.hex == sha(b"f", *map(raw, file.children))
        for number, group in enumerate(file.children):
            assert (group.kind, group.name) == ("row group", str(number))
            assert group.hex == sha(b"g", *map(raw, group.children))
    leaves = [n for file in digest.files for n in file.walk() if n.kind == "row"]
    assert {*leaves} == {n for n in digest.walk() if n.kind == "row"}
    assert [n.kind for n in digest.walk()][:3] == ["table", "tensor", "metadata"]


@pytest.mark.parametrize("how", [{}, {"zorder": [1, 0], "ids": "grown"}, {"target_bytes": 1 << 20}])
def test_rows_that_only_move_change_nothing(full, how):
    before = full.digest()
    full.optimize(**how)
    after = full.digest()
    assert {file.name for file in after.files} != {file.name for file in before.files}
    assert after == before
    assert after.version > before.version


def test_the_same_rows_in_other_files_have_the_same_digest(full, x, tmp_path):
    other = tl.open(tmp_path / "other")
    other.write("grown", x, block_shape=(1, 40))
    one, two = full.digest("grown"), other.digest("grown")
    assert {row.digest for row in one.rows} == {row.digest for row in two.rows}
    assert one == two
    other.write("again", x, block_shape=(1, 40))
    assert one != other.digest("again"), "the id is a part of it"
    other.write("grown", x, block_shape=(2, 40), mode="overwrite")
    assert one != other.digest("grown"), "so is the way in which it is cut"


def test_a_restored_tensor_has_the_digest_that_it_had(full):
    before, version = full.digest("grown"), full.version
    full["grown"][3, 5] = -1
    assert full.digest("grown") != before
    full.restore("grown", version)
    assert full.digest("grown") == before


@pytest.mark.parametrize(
    "change",
    [
        lambda lake: lake["grown"].__setitem__((3, 5), 7),
        lambda lake: lake.write("grown", np.zeros((1, 40), "i4"), mode="append"),
        lambda lake: lake.delete("label"),
        lambda lake: lake["label"].update_attrs({"unit": "C"}),
        lambda lake: lake.write("more", np.zeros(0)),
    ],
)
def test_what_changes_changes_the_digest_of_it_alone(full, change):
    before = full.digest()
    change(full)
    after = full.digest()
    assert before != after
    same = [name for name in before.ids if name in after and before[name] == after[name]]
    assert len(same) == (3 if "more" in after else 2)


def test_the_order_of_rows_counts_where_the_last_holds(lake):
    """The element is that of the later row, so that rows in another order are another tensor."""
    digests = []
    for order in ((1.0, 2.0), (2.0, 1.0)):
        for name in ("last", "sum"):
            first, second = (tl.SparseTensor([[1], [3]], [value], (9, 9)) for value in order)
            lake.write(name, first, mode="overwrite", layout="coo", duplicates=name)
            lake.write(name, second, mode="append", axis=None)
        digests.append(lake.digest())
    before, after = digests
    assert before["sum"] == after["sum"]
    assert before["last"] != after["last"]


def test_equal_digests_are_equal_and_hash_alike(full):
    one, two = full.digest(), tl.open(full.uri).digest()
    assert one == two
    assert len({one, two}) == 1
    assert one != one["coo"]
    assert one != one.hex, "a text is no digest"
    assert repr(one["coo"]) == f"<Digest of tensor coo: {one['coo'].hex}>"


def test_what_is_saved_comes_back(full, tmp_path):
    for digest in (full.digest(), full.digest("grown")):
        digest.save(tmp_path / "digest")
        loaded = tl.Digest.load(tmp_path / "digest")
        assert loaded == digest
        assert (loaded.uri, loaded.version, loaded.table_id) == (
            full.uri, full.version, digest.table_id,
        )  # fmt: skip
        assert (loaded.kind, loaded.name, loaded.ids) == (digest.kind, digest.name, digest.ids)
        assert [*loaded.walk()] == [*digest.walk()]
        assert loaded.files == digest.files
        assert loaded.hashed == 0


def test_it_pickles_with_all_nodes(full):
    whole = full.digest()
    for one in (whole, whole["coo"], whole.files[0], whole.files[0].children[0]):
        copy = pickle.loads(pickle.dumps(one))
        assert [node.hex for node in copy.walk()] == [node.hex for node in one.walk()]
        assert repr(copy) == repr(one)


def test_a_saved_one_holds_no_element(full, tmp_path, x):
    full.digest().save(tmp_path / "digest")
    assert x[5].tobytes()[20:60] not in (tmp_path / "digest").read_bytes()


def test_a_disk_that_is_full_leaves_the_digest_that_was_saved(full, tmp_path):
    folder = tmp_path / "saved"
    folder.mkdir()
    path, link = folder / "digest", folder / "link"
    small, whole = full.digest("label"), full.digest()
    small.save(path)
    link.symlink_to(path)
    least, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, most))
    try:
        for place in (path, link, folder / "new"):
            with pytest.raises(tl.StorageError, match=r"^the digest cannot be written to .*space"):
                whole.save(place)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (least, most))
    assert tl.Digest.load(path) == small
    assert sorted(folder.iterdir()) == [path, link]
    whole.save(link)
    assert tl.Digest.load(path) == whole
    assert link.is_symlink()


def test_a_place_that_takes_no_digest_is_named(full, tmp_path):
    folder = tmp_path / "saved"
    folder.mkdir()
    for place in (folder, folder / "no" / "digest"):
        with pytest.raises(tl.StorageError, match=f"cannot be written to {place}: .*; name a file"):
            full.digest().save(place)
    assert [*folder.iterdir()] == []


def test_a_file_that_is_no_digest(full, tmp_path):
    path = tmp_path / "digest"
    with pytest.raises(tl.InvalidOptionError, match=r"digest cannot be read: No such file"):
        tl.Digest.load(path)
    full.digest().save(path)
    good = path.read_bytes()
    for bad in (b"", b"PAR1", good[:30], good[:-1], good[:90] + b"x" + good[91:]):
        path.write_bytes(bad)
        with pytest.raises(tl.CorruptDataError, match="is not a digest, or was changed since"):
            tl.Digest.load(path)
    kept = Path(full.uri, "_tensorlake", "digest", "rows").read_bytes()
    path.write_bytes(kept)
    with pytest.raises(tl.CorruptDataError, match="is not a digest"):
        tl.Digest.load(path)
    path.write_bytes(good.replace(b"digests 1\n", b"digests 2\n", 1))
    with pytest.raises(tl.InvalidOptionError, match="use a newer version"):
        tl.Digest.load(path)


def test_what_is_no_path(full, tmp_path):
    with open(tmp_path / "other", "wb") as other:  # a number was taken for an open file, and closed
        for path in (other.fileno(), None, np.int64(other.fileno()), "a\0b", b"\0", "\ud800"):
            for call in (tl.Digest.load, full.digest().save):
                with pytest.raises(tl.InvalidOptionError, match="is no path of a file"):
                    call(path)
        other.write(b"still open")
    assert (tmp_path / "other").read_bytes() == b"still open"


def test_a_tensor_that_it_does_not_have(full):
    with pytest.raises(tl.TensorNotFoundError, match=r"the digest has no tensor 'grow'.*'grown'"):
        full.digest()["grow"]
    assert "grow" not in full.digest()
    assert full.digest("coo").ids == ["coo"]
