"""Files as people have them, small, and what reads a source as a whole."""

import io
import pickle

import numpy as np
import pytest
from PIL import Image


def picture(seed=0, form="PNG", size=(6, 5), mode="RGB"):
    """Return the bytes of an image of `size` (width, height), and its pixels as Pillow decodes them."""
    rng = np.random.default_rng(seed)
    shape = (size[1], size[0], 3) if mode == "RGB" else (size[1], size[0])
    stream = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8)).save(stream, form)
    return stream.getvalue()


@pytest.fixture(scope="session")
def make_picture():
    return picture


@pytest.fixture
def read_all():
    """Return what reads all samples of a source, after it went to another process and back, and encodes them."""

    def read(source, on_bad=None, encode=True):
        there = pickle.loads(pickle.dumps(source))
        pieces = pickle.loads(pickle.dumps(source.pieces()))
        assert len({piece.name for piece in pieces}) == len(pieces)
        samples = [sample for piece in pieces for sample in there.samples(piece, on_bad)]
        for sample in samples:
            assert sample.keys() == source.schema.keys()
        if encode:
            for name, kind in source.schema.items():
                array = kind.encode([sample[name] for sample in samples], name)
                assert array.type == kind.storage()
                assert len(array) == len(samples)
        return samples

    return read
