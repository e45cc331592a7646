"""Files of an ingestion that name other files: nothing of those is read, or even opened."""

import h5py
import numpy as np
import pytest
import tifffile
from PIL import Image

import tensorlake_spark as tl
from tensorlake_spark.spark.ingest.arrays.array_files import members_of, opened

SECRET = np.frombuffer(b"aws_secret_access_key", np.uint8)


def read(path, member=""):
    with opened(str(path), member) as stored:
        return stored.read((0,) * len(stored.shape), stored.shape)


def external(file, victim):
    file.create_dataset("x", SECRET.shape, "u1", external=[(f"{victim}.txt", 0, SECRET.size)])


def virtual(file, victim):
    layout = h5py.VirtualLayout(SECRET.shape, "u1")
    layout[:] = h5py.VirtualSource(f"{victim}.h5", "x", SECRET.shape)
    file.create_virtual_dataset("x", layout)


def linked(file, victim):
    file["x"] = h5py.ExternalLink(f"{victim}.h5", "/x")


def linked_softly(file, victim):
    file["far"] = h5py.ExternalLink(f"{victim}.h5", "/")
    file["a/near"] = h5py.SoftLink("/far")
    file["x"] = h5py.SoftLink("a/./near/x")


@pytest.fixture
def victim(tmp_path):
    """The stem of files that are no concern of an ingestion."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    SECRET.tofile(folder / "keys.txt")
    with h5py.File(folder / "keys.h5", "w") as file:
        file["x"] = SECRET
    return folder / "keys"


@pytest.mark.parametrize("ending", ["h5", "nc"])
@pytest.mark.parametrize("lie", [external, virtual, linked, linked_softly])
def test_hdf5_gives_no_other_file(tmp_path, victim, lie, ending):
    path = tmp_path / f"evil.{ending}"
    with h5py.File(path, "w") as file:
        lie(file, victim)
        file["good"] = np.arange(3)
    with h5py.File(path) as file:
        assert np.array_equal(file["x"], SECRET), "the attack works where nobody looks"
    assert "good" in members_of(str(path))
    with pytest.raises(
        tl.InvalidTensorError, match=r"secrets/keys\.\w+'?, and only .*copy the data"
    ):
        read(path, "x")
    assert read(path, "good").tolist() == [0, 1, 2]


def test_a_group_elsewhere_is_no_road(tmp_path, victim):
    with h5py.File(tmp_path / "evil.h5", "w") as file:
        file["a/far"] = h5py.ExternalLink(f"{victim}.h5", "/")
    with pytest.raises(tl.InvalidTensorError, match=r"'far' is a link to the file '.*keys\.h5'"):
        read(tmp_path / "evil.h5", "a/far/x")


def test_links_inside_of_hdf5_are_followed_and_end(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["a/b/x"] = np.arange(4)
        file["a/up"] = h5py.SoftLink("b/./x")
        file["there"] = h5py.SoftLink("/a")
        file["round"] = h5py.SoftLink("/round")
        file["gone"] = h5py.SoftLink("/nowhere")
    assert read(path, "there/up").tolist() == [0, 1, 2, 3]
    for member, says in (("round", "links to links"), ("gone", "there is no 'nowhere'"), ("a/up/y", "no 'y'")):  # fmt: skip
        with pytest.raises(tl.InvalidTensorError, match=says):
            read(path, member)


OME = """<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" UUID="urn:uuid:a">
<Image ID="Image:0"><Pixels DimensionOrder="XYCZT" Type="uint8" SizeX="16" SizeY="16" SizeC="1" SizeZ="1" SizeT="2">
<Channel ID="Channel:0:0" SamplesPerPixel="1"/>
<TiffData FirstT="0" IFD="0" PlaneCount="1"><UUID FileName="evil.ome.tif">urn:uuid:a</UUID></TiffData>
<TiffData FirstT="1" IFD="0" PlaneCount="1"><UUID FileName="{}">urn:uuid:{}</UUID></TiffData>
</Pixels></Image></OME>"""


def write_ome(path, *other):
    page = np.ones((16, 16), np.uint8)
    tifffile.imwrite(path, page, description=OME.format(*other), metadata=None, compression="zlib")


def test_ome_tiff_gives_no_other_file(tmp_path):
    victim = tmp_path / "victim.tif"
    tifffile.imwrite(victim, np.full((16, 16), 7, np.uint8))
    path = tmp_path / "evil.ome.tif"
    write_ome(path, "victim.tif", "b")
    assert tifffile.imread(path)[1, 0, 0] == 7, "the attack works where nobody looks"
    for use in (read, lambda path: members_of(str(path))):
        with pytest.raises(tl.InvalidTensorError, match=r"pages in files of other names, .*copy"):
            use(path)
    write_ome(path, "evil.ome.tif", "a")
    assert read(path).shape == (2, 16, 16), "what lies in the file itself is read"


@pytest.mark.parametrize(("form", "ending"), [("GIF", "png"), ("EPS", "jpg"), ("TIFF", "jpeg")])
def test_an_image_is_what_its_name_says(tmp_path, form, ending):
    path = tmp_path / f"x.{ending}"
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(path, form)
    with pytest.raises(tl.InvalidTensorError, match=r"it is no PNG or JPEG file, as its name says"):
        read(path)


def test_a_jpeg_named_png_is_read(tmp_path):
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / "x.png", "JPEG")
    assert read(tmp_path / "x.png").shape == (8, 8)
