"""A fold: map, combine, finish."""

from tensorlake_spark.computing.fold import Fold


class Longest(Fold):
    """The length of the longest block."""

    def map(self, place, block):
        return len(block)

    def combine(self, one, other):
        return max(one, other)

    def finish(self, partial):
        return partial or 0


def test_partials_are_combined_one_after_the_other():
    fold = Longest()
    assert fold.combine_all(fold.map((), "x" * n) for n in (2, 5, 3)) == 5


def test_no_block_has_no_partial():
    assert Longest().combine_all([]) is None
    assert Longest().finish(None) == 0
