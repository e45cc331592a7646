"""Transforms that worker processes can import."""

import os
import signal
import time

import numpy as np


def doubled(sample):
    return {"x": sample["x"] * 2, "label": sample["label"], "pid": os.getpid()}


def negated(values):
    return -values


def failing(sample):
    if sample["label"] == 17:
        raise ValueError("seventeen")
    return sample


def dying(sample):
    if sample["label"] == 17:
        os.kill(os.getpid(), signal.SIGKILL)
    return sample


def endless(sample):
    while True:
        time.sleep(0.01)


def as_function(sample):
    """Return what cannot be sent to another process."""
    return {"x": lambda: sample}


class Unsent:
    """Raises an error of its own when it is pickled."""

    def __reduce__(self):
        raise RuntimeError("stays here")


class Unread:
    """Raises an error of its own when it is unpickled."""

    def __reduce__(self):
        return int, ("unread",)


def as_unsent(sample):
    return {"x": Unsent()}


def as_unread(sample):
    return {"x": Unread()}


def summed(samples):
    return sum(np.asarray(sample["x"]) for sample in samples)
