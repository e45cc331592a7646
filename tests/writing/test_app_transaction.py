"""Batches with a number, by Python: names that may not be, and numbers of tensors that are not there."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.writing.app_transaction import check_transaction


@pytest.mark.parametrize(
    ("transaction", "says"),
    [
        (("tensor/x", 3), "'tensor/x' of who writes the batches .* counts the changes of a tensor"),
        (("tag/v1", 3), "'tag/v1' .* names a version; choose another name"),
        (("", 3), "is empty"),
        (("  ", 3), "is empty"),
        (("nightly", -1), "number -1 of a batch of 'nightly' is not from 0"),
        (("nightly", 2**63), "is not from 0"),
        (("nightly", "7"), "not a pair"),
        ("nightly", "not a pair"),
    ],
)
def test_names_and_numbers_that_may_not_be(lake, transaction, says):
    lake.write("x", np.zeros(3))
    with pytest.raises(tl.InvalidOptionError, match=says):
        lake.write("x", np.ones(3), mode="append", transaction=transaction)
    assert lake["x"].shape == (3,)


def test_the_first_and_the_last_number():
    for number in (0, 2**63 - 1):
        check_transaction(("tensors", number))


def test_a_number_of_another_tensor_is_told(lake):
    lake.write("photos", np.zeros(3), transaction=("nightly", 1))
    says = (
        "batch 1 of 'nightly' counts as done in .* no tensor 'labels'.*a name of its own.*greater"
    )
    for mode in ("error", "append", "overwrite"):
        with pytest.raises(tl.InvalidOptionError, match=says):
            lake.write("labels", np.ones(3), mode=mode, transaction=("nightly", 1))
    lake.delete("photos")
    with pytest.raises(tl.InvalidOptionError, match=r"no tensor 'photos'.* deleted since"):
        lake.write("photos", np.ones(3), transaction=("nightly", 1))
    assert lake.write("labels", np.ones(3), transaction=("nightly", 2)).shape == (3,)
