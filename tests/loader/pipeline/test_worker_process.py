"""What a worker process is told and answers, driven here by a connection, and errors that go from it."""

import multiprocessing
import threading

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidSampleError, MissingDataError
from tensorlake_spark.loader.order.epoch_order import EpochOrder
from tensorlake_spark.loader.pipeline.batch_plan import plan_of
from tensorlake_spark.loader.pipeline.shared_batch import receive_batch
from tensorlake_spark.loader.pipeline.worker_process import (
    EPOCH,
    FAILED,
    FETCH,
    FETCHED,
    MADE,
    MAKE,
    EpochSetting,
    Worker,
    WorkerSetting,
    received_error,
    sent_error,
)
from tensorlake_spark.loader.sources.tensor_samples import TensorSamples


class Strange(Exception):
    def __init__(self, one, other):
        super().__init__(f"{one} and {other}")


@pytest.fixture
def parent(lake):
    """The parent's end of a connection, with a worker in a thread at the other."""
    ref = lake.write("x", np.arange(10))
    setting = WorkerSetting(TensorSamples({"x": ref}, 0, 1 << 20), 0, 1, None, None, False)
    here, there = multiprocessing.Pipe()

    def work():
        with pytest.raises((EOFError, OSError)):
            Worker(there, setting).run()

    thread = threading.Thread(target=work)
    thread.start()
    yield here
    here.close()
    thread.join()
    there.close()


def test_batches_of_two_epochs(parent):
    order = EpochOrder(10, 4, None)
    for key in (1, 2):
        parent.send((EPOCH, EpochSetting(key)))
        for number in (0, 2):
            parent.send((FETCH, plan_of(order, None, number, 0, 1, 0)))
            assert parent.recv() == (FETCHED, number, 8 * (4 if number == 0 else 2))
        for number in (0, 2):
            parent.send((MAKE, number))
            what, found, counts = parent.recv()
            assert (what, found) == (MADE, number)
            assert counts["batches"] == 0  # the parent counts what is delivered
            failure, batch, _ = receive_batch(parent)
            assert failure is None
            np.testing.assert_array_equal(batch["x"], np.arange(10)[4 * number :][:4])


def test_a_batch_that_fails(parent, place):
    parent.send((EPOCH, EpochSetting(1)))
    parent.send((MAKE, 7))
    what, number, said = parent.recv()
    assert (what, number) == (FAILED, 7)
    assert isinstance(received_error(said), InvalidSampleError | KeyError)


def test_errors_keep_kind_message_and_place():
    try:
        raise MissingDataError("it is gone")
    except MissingDataError as error:
        found = received_error(sent_error(error))
    assert type(found) is MissingDataError
    assert str(found) == "it is gone"
    assert "test_worker_process.py" in str(found.__cause__)


def test_an_error_that_does_not_pickle_becomes_a_plainer_one():
    found = received_error(sent_error(Strange(1, 2)))
    assert isinstance(found, InvalidSampleError)
    assert str(found) == "1 and 2"
    assert isinstance(found, tl.TensorLakeError)
