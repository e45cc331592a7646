"""What metadata says of features."""

import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.columns.feature_set import MARK, mark_of


@pytest.mark.parametrize(
    ("places", "runs"), [([], []), ([4], [[4, 1]]), ([0, 1, 5, 6, 7, 2], [[0, 2], [5, 3], [2, 1]])]
)
def test_places_are_kept_as_runs(places, runs):
    assert mark_of(places, {}, {"b", "a"})[MARK] == {"places": runs, "types": {}, "deprecated": ["a", "b"]}  # fmt: skip


@pytest.mark.parametrize(
    "mark",
    [
        {},
        {"places": [[0, 1]], "types": {}, "deprecated": []},
        {"places": [[0, 3], [1, -1]], "types": {}, "deprecated": []},
        {"places": [[0, "x"]], "types": {}, "deprecated": []},
        {"places": [[0, 2]], "types": 3, "deprecated": []},
    ],
)
def test_a_mark_that_does_not_fit_is_damage(tmp_path, mark):
    lake = tl.open(tmp_path)
    lake.features("t").write(pa.table({"a": [1], "b": [2]}))
    lake["t/int64"].update_attrs({MARK: mark})
    with pytest.raises(
        tl.CorruptDataError, match=r"tensor 't/int64' belongs to a table of features"
    ):
        lake.features("t")


def test_a_tensor_of_nulls_that_was_changed_alone_is_damage(tmp_path):
    lake = tl.open(tmp_path)
    lake.features("t").write(pa.table({"a": [1, None], "b": [2, 3]}))
    lake.write("t/int64/null", lake["t/int64/null"][:1], mode="overwrite")
    with pytest.raises(tl.CorruptDataError, match=r"'t/int64/null' .* its shape"):
        lake.features("t")


def test_a_tensor_without_the_mark_is_none_of_the_table(tmp_path):
    lake = tl.open(tmp_path)
    lake.write("t/int64", [1, 2])
    with pytest.raises(tl.TensorNotFoundError):
        lake.features("t").read()
