"""A trained network as a contender, on the same questions as all others."""

from __future__ import annotations

from pathlib import Path
from typing import final

import torch

from dgn.data.batches import ClaimBatches
from dgn.data.feature_table import made_with
from dgn.errors import InvalidInput
from dgn.evaluation.contenders.base import Contender, Picks, Questions
from dgn.evaluation.contenders.facets import ClaimFacets
from dgn.training.devices import placed_on
from dgn.training.model_folder import load_network, read_description
from dgn.training.networks import parameter_count
from dgn.training.trainer import pick_all
from dgn.unfolding import SelectionNetwork

_CLAIMS_AT_ONCE = 256


@final
class TrainedNetwork(Contender):
    """Any network of ours; `from_folder` opens one that `dgn train` wrote."""

    def __init__(
        self,
        name: str,
        network: SelectionNetwork,
        inputs: int,
        made_with: tuple[str, bool] | None = None,
    ) -> None:
        self.name, self.network, self._inputs = name, network, inputs
        self.parameters = parameter_count(network)
        self._made_with = made_with

    @classmethod
    def from_folder(cls, folder: Path) -> TrainedNetwork:
        """Named after its folder."""
        described = read_description(folder)
        learned_on = {made_with(key) for key in described.features.values()}
        only = learned_on.pop() if len(learned_on) == 1 else None
        return cls(folder.resolve().name, load_network(folder), described.inputs, only)

    def pick(self, questions: Questions, k: int) -> Picks:
        table = questions.vectors
        if self._inputs != table.dimension:
            raise InvalidInput(
                "model",
                found=f"{self.name}, for vectors of {self._inputs} dimensions",
                allowed=f"one for {table.dimension}, as the features have; or the --vectors and "
                "--unit that its own features were made with",
            )
        if None not in (self._made_with, questions.made_with) and (
            self._made_with != questions.made_with
        ):
            raise InvalidInput(
                "model",
                found=f"{self.name}, trained on {_said(self._made_with)}",
                allowed=f"one for the features at hand, {_said(questions.made_with)}; or the "
                "--vectors and --unit of its own",
            )
        device: torch.device = next(self.network.parameters()).device
        batches = ClaimBatches(table, _CLAIMS_AT_ONCE, seed=0, place=placed_on(device))
        return pick_all(self.network, batches, k)[0]


def open_contender(folder: Path) -> Contender:
    """A run of `dgn train`, whatever its encoder."""
    if read_description(folder).config.network.encoder == "facets":
        return ClaimFacets.pretrained(folder)
    return TrainedNetwork.from_folder(folder)


def _said(made_with: tuple[str, bool] | None) -> str:
    if made_with is None:
        return "unknown vectors"
    vectors, unit = made_with
    return f"vectors {vectors}, {'scaled to length 1' if unit else 'not scaled'}"
