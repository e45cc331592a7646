"""Sound and video."""

import io
import sys
import wave

import numpy as np
import pytest
import soundfile
import videos

import tensorlake_spark as tl
from tensorlake_spark.datasets.types import Audio, Sound, Video
from tensorlake_spark.datasets.types.media.video_facts import FrameIndex

TIME = np.arange(4000) / 8000
TONES = np.stack([np.sin(TIME * 2764), np.sin(TIME * 3456)], axis=1).astype("f4") / 2


def sound(form, samples=TONES, **options):
    out = io.BytesIO()
    soundfile.write(out, samples, 8000, format=form.upper(), **options)
    return out.getvalue()


@pytest.mark.parametrize("form", ["wav", "flac", "mp3"])
def test_files_are_stored_as_they_are(form):
    data = sound(form)
    column = Audio(form).encode([data, None, io.BytesIO(data)], "sound")
    assert Audio(form).decode(column, native=True) == [data, None, data]
    row = column[0].as_py()
    assert (row["rate"], row["channels"], row["format"]) == (8000, 2, form)
    found = Audio(form).decode(column)
    assert found[1] is None
    wanted = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)[0]
    assert isinstance(found[0], Sound)
    np.testing.assert_allclose(found[0].samples, wanted, atol=1e-7)
    assert row["length"] == len(wanted)


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT"])
def test_wav_of_all_widths_is_what_soundfile_reads(subtype):
    data = sound("wav", subtype=subtype)
    kind = Audio("wav")
    ((samples, rate),) = kind.decode(kind.encode([data], "sound"))
    np.testing.assert_array_equal(samples, soundfile.read(io.BytesIO(data), dtype="float32")[0])
    assert rate == 8000


@pytest.mark.parametrize("form", ["wav", "flac"])
def test_numbers_come_back_with_16_bits(form):
    whole = np.random.default_rng(0).integers(-32768, 32767, (100, 2), np.int16)
    kind = Audio(form)
    found = kind.decode(kind.encode([(whole, 8000), (TONES, 16000), (TONES[:, 0], 8000)], "sound"))
    np.testing.assert_array_equal(found[0].samples * 32768, whole)
    np.testing.assert_allclose(found[1].samples, TONES, atol=1 / 65536 + 1e-7)
    assert found[2].samples.shape == (4000, 1)
    again = kind.decode(kind.encode(found, "sound"))
    np.testing.assert_array_equal(again[1].samples, found[1].samples)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (sound("flac"), "a flac file"),
        (b"hello there, this is text", "no wav"),
        (sound("wav")[:-100], "truncated"),
        (sound("wav")[:30], "cannot be read: it is truncated"),
        (sound("wav", subtype="FLOAT")[:-100], "truncated"),
        (sound("wav", subtype="ULAW")[:-100], "truncated"),
        (([[0.5], [0.5, 0.5]], 8000), "(length, channels)"),
        ((TONES * 3, 8000), "floats from -1 to 1"),
        ((TONES * np.nan, 8000), "floats from -1 to 1"),
        ((TONES, 0), "a rate above 0"),
        ((TONES, 1 << 40), "below 2**31"),
        ((TONES, True), "in whole Hz"),
        ((TONES.astype("i4"), 8000), "floats or int16"),
        ((np.zeros((2, 2, 2)), 8000), "(length, channels)"),
        (TONES, "a pair"),
    ],
    ids=lambda value: (
        value if isinstance(value, str) else ""
    ),  # in some files is the time of the day
)
def test_what_is_no_sound_is_refused(value, says):
    with pytest.raises(tl.InvalidSampleError) as error:
        Audio("wav").encode([None, value], "sound")
    assert says in str(error.value)
    assert "column 'sound', sample 1: " in str(error.value)


def test_what_a_format_cannot_hold_is_refused():
    for form, samples, rate in (
        ("mp3", TONES, 12345),
        ("mp3", np.zeros((9, 3)), 8000),
        ("flac", np.zeros((9, 9)), 8000),
        ("flac", np.zeros((0, 1)), 8000),
        ("mp3", np.zeros((0, 1)), 8000),
    ):
        with pytest.raises(
            tl.InvalidSampleError, match=f"sample 1: expected a sound that {form}"
        ) as error:
            Audio(form).encode([None, (samples, rate)], "sound")
        assert "BytesIO" not in str(error.value)


def test_wav_needs_no_other_package():
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(np.arange(5, dtype="<i2").tobytes())
    kind = Audio("wav")
    (found,) = kind.decode(kind.encode([out.getvalue()], "sound"))
    assert (found.samples[:, 0] * 32768).tolist() == [0, 1, 2, 3, 4]


# ------------------------------------------------------------------ video


def test_a_video_is_stored_with_what_its_file_says():
    data = videos.encode(frames=12, size=(32, 48))
    column = Video().encode([data, None], "video")
    row = column[0].as_py()
    told = [row[name] for name in ("data", "format", "frames", "fps", "height", "width")]
    assert told == [data, "mp4", 12, 25.0, 32, 48]
    assert FrameIndex.from_bytes(row["index"], 12).keys.tolist() == [0, 10]
    assert Video().decode(column, native=True) == [data, None]
    found, none = Video().decode(column)
    assert none is None
    np.testing.assert_array_equal(found.frames(9, 11), videos.decode_all(data)[9:11])
    assert Video().encode(column, "video") == column


def test_what_is_no_video_names_its_sample():
    with pytest.raises(tl.InvalidSampleError, match=r"column 'video', sample 1: .*a video"):
        Video().encode([None, b"....ftyp123"], "video")


def test_packages_that_are_missing_are_named(monkeypatch):
    flac = sound("flac")
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(tl.MissingDependencyError, match=r"tensorlake-spark\[audio\]"):
        Audio("flac").encode([flac], "sound")
