"""Random numbers of samples: a function of key, position and repeat, and of nothing else."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.loader.order.sample_draws import draw_starts, draws_of, generator_of

KEYS = st.integers(0, 2**64 - 1)
SAMPLES = st.lists(
    st.tuples(st.integers(0, 2**40), st.integers(0, 2**20 - 1)),
    min_size=1,
    max_size=30,
    unique=True,
)


def arrays(samples):
    positions, repeats = np.array(samples, np.int64).T
    return positions, repeats


@given(KEYS, SAMPLES, st.data())
def test_a_sample_has_the_same_numbers_beside_whatever_others(key, samples, data):
    starts = draw_starts(key, *arrays(samples))
    draws = draws_of(key, starts, 5)
    assert draws.shape == (len(samples), 5)
    assert ((draws >= 0) & (draws < 1)).all()
    place = data.draw(st.integers(0, len(samples) - 1))
    alone = draw_starts(key, *arrays([samples[place]]))
    assert alone[0] == starts[place]
    np.testing.assert_array_equal(draws_of(key, alone, 5)[0], draws[place])
    np.testing.assert_array_equal(draws_of(key, alone, 3)[0], draws[place, :3])


@given(KEYS, SAMPLES)
def test_other_samples_repeats_and_keys_have_others(key, samples):
    starts = draw_starts(key, *arrays(samples))
    assert len({*starts.tolist()}) == len(samples)
    assert (draws_of(key, starts, 4) != draws_of(key ^ 1, starts, 4)).any(axis=1).all()


def test_numbers_of_many_samples_are_even():
    starts = draw_starts(5, np.arange(100_000), np.zeros(100_000, np.int64))
    draws = draws_of(5, starts, 2)
    assert np.abs(draws.mean(axis=0) - 0.5).max() < 0.005
    assert abs(np.corrcoef(draws.T)[0, 1]) < 0.02
    neighbours = np.corrcoef(draws[:-1, 0], draws[1:, 0])[0, 1]
    assert abs(neighbours) < 0.02


@given(KEYS, SAMPLES)
def test_generators_are_those_of_their_sample(key, samples):
    starts = draw_starts(key, *arrays(samples))
    first = [generator_of(key, start).integers(0, 2**63) for start in starts]
    assert first == [generator_of(key, start).integers(0, 2**63) for start in starts]
    assert len({*first}) == len(samples)
    assert generator_of(key ^ 1, starts[0]).integers(0, 2**63) != first[0]


def test_golden_values():
    starts = draw_starts(3, np.array([0, 7, 7]), np.array([0, 0, 1]))
    assert starts.tolist() == [
        2092789425003139053,
        16393961507643560470,
        12673390494201651069,
    ]
    assert generator_of(3, starts[1]).bit_generator.random_raw() == 17453912706901774124
