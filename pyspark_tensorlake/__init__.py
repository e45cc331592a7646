"""Lets Spark find ``format("tensor")`` without ``register()``: it looks into packages ``pyspark_*``."""

from tensorlake_spark.spark.source.data_source import TensorDataSource as DefaultSource

__all__ = ["DefaultSource"]
