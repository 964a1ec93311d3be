"""How does it get better? Fitting a selection network; needs torch (`dgn[train]`)."""

from dgn.errors import require_extra

require_extra("dgn.training", package="torch", extra="train")

from dgn.training.fit import EpochReport, FitConfig, LabelledSets, fit

__all__ = ["EpochReport", "FitConfig", "LabelledSets", "fit"]
