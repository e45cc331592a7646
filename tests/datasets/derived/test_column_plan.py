"""The columns of a copy."""

import pickle

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.derived.column_plan import chosen_types, origins_of
from tensorlake_spark.datasets.links.link_rules import LinkRules
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.errors import InvalidOptionError

IMAGE = tl.types.Image("jpeg")
SCHEMA = SampleSchema(
    {"image": IMAGE, "link": tl.types.Link(IMAGE, nullable=False), "n": "int32", "g/x": "float32"}
)


def test_links_become_what_they_lead_to():
    schema, fetched, anew = chosen_types(SCHEMA, None, "fetch", None, "ds")
    assert [*schema] == [*SCHEMA]
    assert schema["link"] == tl.types.Image("jpeg", nullable=False)
    assert (fetched, anew) == ({"link"}, frozenset())
    assert chosen_types(SCHEMA, None, "keep", None, "ds") == (SCHEMA, frozenset(), frozenset())


def test_other_types():
    types = {"image": tl.types.Image("png"), "n": "int32"}
    schema, _, anew = chosen_types(SCHEMA, ["n", "image", "n"], "keep", types, "ds")
    assert [*schema.items()] == [("n", SCHEMA["n"]), ("image", tl.types.Image("png"))]
    assert anew == {"image"}


@pytest.mark.parametrize(
    ("columns", "links", "types", "said"),
    [
        (["imag"], "keep", None, "no column 'imag'.*did you mean 'image'"),
        (None, "keep", {"m": "int32"}, "no column 'm'"),
        ("image", "keep", None, "is one text"),
        (5, "keep", None, "columns=5 is not a list of names"),
        (None, "keep", "int32", "types='int32' does not map names of columns to types"),
        (None, "keep", ["n"], "does not map names of columns to types"),
        ([], "keep", None, "at least one column"),
        (None, "both", None, "links='both'"),
        (None, "keep", {"n": "number"}, "not a type of a column"),
    ],
)
def test_what_cannot_be(columns, links, types, said):
    with pytest.raises(InvalidOptionError, match=said):
        chosen_types(SCHEMA, columns, links, types, "ds")


def test_values_to_encode_anew_travel(made):
    schema = made.ds.schema.select(["label", "scan"])
    positions = np.array([4, 0, 9])
    origin, recoded = origins_of(
        made.ds.stored.snapshot, LinkRules(), schema, frozenset(), frozenset(["scan"]), positions
    )
    assert origin.columns == {"label": "label"}
    found = pickle.loads(pickle.dumps(recoded))(1, 3)
    assert [*found] == ["scan"]
    for value, position in zip(found["scan"], positions[1:], strict=True):
        np.testing.assert_array_equal(value, made.ds["scan"][int(position)])
