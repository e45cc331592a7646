"""Members of tar files, beside tarfile."""

import gzip
import io
import tarfile

import pytest

from tensorlake_spark.datasets.sources.folder import MAX_BYTES
from tensorlake_spark.datasets.sources.tar_members import members
from tensorlake_spark.errors import InvalidSampleError

FILES = {
    "a.txt": b"hello",
    "empty": b"",
    "folder/" + "x" * 150 + ".bin": bytes(range(256)) * 5,
    "umlaut-ä-" + "y" * 120 + ".txt": b"1" * 512,
}


def tar(files=FILES, form=tarfile.GNU_FORMAT, extra=()):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=form) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for info in extra:
            archive.addfile(info)
    return stream.getvalue()


def read(data):
    return list(members(io.BytesIO(data), "x.tar"))


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_members_are_those_of_tarfile(form):
    data = tar(form=form)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        expected = [(one.name, archive.extractfile(one).read()) for one in archive]
    assert read(data) == expected == list(FILES.items())


def test_links_folders_and_devices_are_left_out():
    link, folder, device = (tarfile.TarInfo(name) for name in ("link", "folder", "device"))
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    folder.type, device.type = tarfile.DIRTYPE, tarfile.CHRTYPE
    assert read(tar({"a": b"1"}, extra=[link, folder, device])) == [("a", b"1")]


@pytest.mark.parametrize("cut", [0, 100, 512, 513, 516, 700, 1024, 1100, 2048])
def test_a_tar_that_breaks_off_is_told_also_between_members(cut):
    data = tar({"a": b"hello", "b": b"world"})
    assert len(read(data)) == 2
    with pytest.raises(InvalidSampleError, match="breaks off"):
        read(data[:cut])


def test_a_member_that_claims_to_be_huge_is_refused_before_it_is_read(monkeypatch):
    info = tarfile.TarInfo("bomb")
    info.size = 1 << 40
    with pytest.raises(InvalidSampleError, match="too many for one value"):
        read(info.tobuf(tarfile.GNU_FORMAT))
    monkeypatch.setenv(MAX_BYTES, "4")
    with pytest.raises(InvalidSampleError, match=r"member 'a\.txt' has more than 4 bytes"):
        read(tar())


def test_a_packed_bomb_of_a_header_is_refused():
    info = tarfile.TarInfo("name")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 1 << 33
    packed = gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 20))
    with pytest.raises(InvalidSampleError, match="a header of 8589934592 bytes"):
        list(members(gzip.GzipFile(fileobj=io.BytesIO(packed)), "x.tar.gz"))


@pytest.mark.parametrize("junk", [b"no tar at all" * 100, b"\x80\x04" * 300])
def test_what_is_no_tar_is_told(junk):
    with pytest.raises(InvalidSampleError, match="this is not a tar"):
        read(junk)


def test_sparse_members_are_refused():
    info = tarfile.TarInfo("s")
    info.type = tarfile.GNUTYPE_SPARSE
    with pytest.raises(InvalidSampleError, match="sparse"):
        read(info.tobuf(tarfile.GNU_FORMAT))
