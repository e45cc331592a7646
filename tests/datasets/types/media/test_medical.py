"""Medical images."""

import io
import sys

import numpy as np
import pydicom
import pytest
from pydicom.dataset import FileDataset, FileMetaDataset

import tensorlake_spark as tl
from tensorlake_spark.datasets.types import Dicom
from tensorlake_spark.datasets.types.media.media_bytes import MAX_PIXELS


def scan(array, syntax=pydicom.uid.ExplicitVRLittleEndian):
    meta = FileMetaDataset()
    meta.TransferSyntaxUID = syntax
    meta.MediaStorageSOPClassUID = pydicom.uid.CTImageStorage
    meta.MediaStorageSOPInstanceUID = pydicom.uid.generate_uid()
    head = FileDataset(None, {}, file_meta=meta, preamble=bytes(128))
    head.Rows, head.Columns = array.shape
    head.SamplesPerPixel, head.PhotometricInterpretation = 1, "MONOCHROME2"
    head.BitsAllocated = head.BitsStored = 16
    head.HighBit, head.PixelRepresentation, head.Modality = 15, 0, "CT"
    head.PixelData = array.tobytes()
    if syntax.is_compressed:
        head.PixelData = pydicom.encaps.encapsulate([array.tobytes()])
        head["PixelData"].is_undefined_length = True
    out = io.BytesIO()
    head.save_as(out, enforce_file_format=True)
    return out.getvalue()


def test_dicom_is_stored_as_it_is_and_read_as_pixels():
    array = np.random.default_rng(0).integers(0, 4096, (5, 7), np.uint16)
    data = scan(array)
    column = Dicom().encode([data, None], "scan")
    row = column[0].as_py()
    assert (row["height"], row["width"], row["frames"], row["channels"], row["modality"]) == (
        5,
        7,
        1,
        1,
        "CT",
    )
    found = Dicom().decode(column)
    np.testing.assert_array_equal(found[0], array)
    assert found[1] is None
    with pytest.raises(tl.InvalidSampleError, match="without its mark"):
        Dicom().encode([b"text"], "scan")


def test_a_file_that_needs_another_package_is_not_called_damaged():
    known = (pydicom.uid.JPEGLSLossless, pydicom.uid.HTJ2KLossless, pydicom.uid.JPEG2000Lossless)
    syntax = next(uid for uid in known if not pydicom.pixels.get_decoder(uid).is_available)
    column = Dicom().encode([scan(np.ones((2, 2), np.uint16), syntax)], "scan")
    with pytest.raises(
        tl.MissingDependencyError, match=r"needs a package to be decoded: .*pylibjpeg"
    ) as error:
        Dicom().decode(column)
    assert "\n" not in str(error.value)


def test_packages_that_are_missing_are_named(monkeypatch):
    data = scan(np.ones((2, 2), np.uint16))
    monkeypatch.setitem(sys.modules, "pydicom", None)
    with pytest.raises(tl.MissingDependencyError, match=r"tensorlake-spark\[dicom\]"):
        Dicom().encode([data], "scan")


def test_a_file_that_claims_too_many_pixels_is_not_unpacked(monkeypatch):
    column = Dicom().encode([scan(np.ones((3, 4), np.uint16))], "scan")
    monkeypatch.setenv(MAX_PIXELS, "12")
    assert Dicom().decode(column)[0].shape == (3, 4)
    monkeypatch.setenv(MAX_PIXELS, "11")
    with pytest.raises(
        tl.InvalidSampleError, match=f"at most 11 pixels, got 1 x 3 x 4.*{MAX_PIXELS}"
    ):
        Dicom().encode([scan(np.ones((3, 4), np.uint16))], "scan")
    with pytest.raises(tl.CorruptDataError, match=f"1 x 3 x 4, more than 11 pixels.*{MAX_PIXELS}"):
        Dicom().decode(column)
