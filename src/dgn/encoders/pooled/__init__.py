"""The features of the paper: pooled vectors of query and passage, multiplied element by element."""

from dgn.encoders.pooled.encoder import PooledEncoder
from dgn.encoders.pooled.family import PooledFamily, PooledSettings
from dgn.encoders.pooled.table import PooledBatches, PooledTable

__all__ = ["PooledBatches", "PooledEncoder", "PooledFamily", "PooledSettings", "PooledTable"]
