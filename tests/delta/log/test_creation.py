"""Tables that were not there yet."""

import numpy as np
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

import tensorlake_spark as tl


@pytest.mark.parametrize("kind", [CommitFailedError, OSError])
def test_who_makes_the_table_second_uses_it(tmp_path, monkeypatch, kind):
    """The other one came between the look and the creation, or the creation's own answer was lost."""
    create = DeltaTable.create

    def second(*arguments, **options):
        create(*arguments, **options)
        raise kind("Protocol changed since last commit")

    monkeypatch.setattr(DeltaTable, "create", second)
    lake = tl.open(tmp_path / "lake")
    lake.write("x", np.arange(3))
    assert lake.version == 1
    assert lake["x"][:].tolist() == [0, 1, 2]


def test_a_table_that_cannot_be_made_is_an_error_of_ours(tmp_path, monkeypatch):
    def fails(*_, **__):
        raise OSError("no room")

    monkeypatch.setattr(DeltaTable, "create", fails)
    with pytest.raises(tl.StorageError, match="no room"):
        tl.open(tmp_path / "lake").write("x", np.arange(3))
    assert list(tl.open(tmp_path / "lake")) == []
