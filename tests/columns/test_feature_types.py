"""Arrow types of features and the dtypes of their tensors."""

import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.columns.feature_types import dtype_of_type, meaning_of, type_of

KINDS = [
    pa.bool_(), pa.int8(), pa.uint64(), pa.float16(), pa.float64(), pa.date32(), pa.date64(), pa.time32("ms"),
    pa.time64("ns"), pa.duration("s"), pa.timestamp("s"), pa.timestamp("ns", tz="Europe/Berlin"),
    pa.timestamp("us", tz="+02:00"), pa.timestamp("us", tz="two\nlines"),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_type_comes_back_from_dtype_and_text(kind):
    assert type_of(dtype_of_type("a", kind), meaning_of(kind)) == kind


@pytest.mark.parametrize("text", ["text", "timestamp[h]", "interval", 3, "date32[day]"])
def test_a_text_that_is_no_type_is_damage(text):
    with pytest.raises(tl.CorruptDataError, match="is not a type of features that int64 holds"):
        type_of("int64", text)


def test_intervals_are_no_numbers():
    with pytest.raises(tl.UnsupportedDtypeError, match="feature 'a' has the type month_day_nano"):
        dtype_of_type("a", pa.month_day_nano_interval())
