"""Small videos that PyAV encodes: of several codecs and containers, at even and uneven times, and with edit lists."""

from __future__ import annotations

import io
import tempfile
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

av.logging.set_level(None)  # x264 tells much


def picture(number: int, height: int = 48, width: int = 64) -> np.ndarray:
    """Return a frame that no other one is like, and that moves, so that frames refer to each other."""
    rows, columns = np.mgrid[:height, :width]
    out = np.empty((height, width, 3), np.uint8)
    out[..., 0] = (rows * 3 + number * 7) % 256
    out[..., 1] = (columns * 2 + number * 5) % 256
    out[..., 2] = 255 * (((rows // 8 + columns // 8 + number) % 4) == 0)
    return out


def encode(
    codec: str = "libx264", container: str = "mp4", frames: int = 40, *, gop: int = 10, b_frames: int = 2,
    uneven: bool = False, first: int = 0, options: dict[str, str] | None = None,
    codec_options: dict[str, str] | None = None, size: tuple[int, int] = (48, 64), audio: bool = False,
) -> bytes:  # fmt: skip
    """Return a video of `picture` 0, 1, ...; `first` is the time of the first one, in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:  # some options read the file again
        path = Path(folder) / "video"
        with av.open(str(path), "w", format=container, options=options or {}) as out:
            stream = out.add_stream(codec, rate=25)
            stream.height, stream.width = size
            stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
            stream.codec_context.gop_size = gop
            stream.codec_context.thread_count = 1  # tests run side by side
            stream.codec_context.time_base = Fraction(1, 1000)
            own = (
                {"bf": str(b_frames), "sc_threshold": "0"} if codec in ("libx264", "mpeg4") else {}
            )
            stream.codec_context.options = {**own, **(codec_options or {})}
            sound = (
                out.add_stream("pcm_s16le" if container == "matroska" else "aac", rate=8000)
                if audio
                else None
            )
            random, time = np.random.default_rng(0), first
            for k in range(frames):
                frame = av.VideoFrame.from_ndarray(picture(k, *size), format="rgb24")
                frame.pts, frame.time_base = time, Fraction(1, 1000)
                time += int(random.integers(5, 200)) if uneven else 40
                out.mux(stream.encode(frame))
                if sound is not None:
                    samples = av.AudioFrame.from_ndarray(np.zeros((1, 320), "i2"), "s16", "mono")
                    samples.sample_rate = 8000
                    samples.pts = 320 * k
                    out.mux(sound.encode(samples))
            out.mux(stream.encode(None))
            if sound is not None:
                out.mux(sound.encode(None))
        return path.read_bytes()


def decode_all(data: bytes) -> np.ndarray:
    """Return all frames by plain PyAV, from the beginning: the oracle."""
    with av.open(io.BytesIO(data)) as container:
        found = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    return np.stack(found)
