"""Many queries at once: batches of columns, and whole files.

`SelectBatch` is what other engines call: Ray Data, Hugging Face datasets, Spark, Dask. `plan_job`
and `run_job` select for the queries of many files, on this machine or on Ray.
"""

from dgn.apps.jobs.engines import run_job
from dgn.apps.jobs.inputs import Partition
from dgn.apps.jobs.job import Done, Job, plan_job
from dgn.apps.jobs.partitioned import partitioned_greedy
from dgn.apps.jobs.select_batch import SelectBatch

__all__ = ["Done", "Job", "Partition", "SelectBatch", "partitioned_greedy", "plan_job", "run_job"]
