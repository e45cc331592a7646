"""BadImage travels between processes."""

import pickle

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.loader.decoding.bad_image import BadImage


def test_it_pickles():
    error = BadImage(7, "its checksum is another one")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.number, again.reason, str(again)) == (
        BadImage, 7, "its checksum is another one", str(error),
    )  # fmt: skip
    assert isinstance(again, CorruptDataError)
    assert isinstance(again, OSError)
