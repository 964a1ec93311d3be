"""Many queries at once: batches of columns, and whole files.

`SelectBatch` is what other engines call: Ray Data, Hugging Face datasets, Spark, Dask. `plan_job`
and `run_job` select for the queries of many files, on this machine or on Ray.
"""

from dgn.batch.engines import run_job
from dgn.batch.inputs import Partition
from dgn.batch.job import Done, Job, plan_job
from dgn.batch.partitioned import partitioned_greedy
from dgn.batch.select_batch import SelectBatch

__all__ = ["Done", "Job", "Partition", "SelectBatch", "partitioned_greedy", "plan_job", "run_job"]
