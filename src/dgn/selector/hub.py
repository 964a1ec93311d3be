"""Selectors on the Hugging Face hub; needs `dgn[hub]`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dgn.errors import InvalidInput, require_extra

require_extra("The Hugging Face hub", package="huggingface_hub", extra="hub")

import huggingface_hub
from huggingface_hub import ModelHubMixin
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

from dgn.selector.model_folder import CARD, CONFIG, WEIGHTS, load_folder, save_model
from dgn.selector.selector import Selector

_hub: Any = huggingface_hub  # whose functions are only partly typed


class HubSelector(  # pyright: ignore[reportIncompatibleMethodOverride]
    ModelHubMixin,
    Selector,
    library_name="dgn",
    tags=["sentence-selection", "evidence", "submodular"],
):
    """A Selector with `push_to_hub`, by huggingface_hub's own mixin."""

    def _save_pretrained(self, save_directory: Path) -> None:
        save_model(self.encoder, save_directory, self.card)

    @classmethod
    def _from_pretrained(  # pyright: ignore[reportIncompatibleMethodOverride]
        cls,
        *,
        model_id: str,
        revision: str | None,
        cache_dir: str | Path | None,
        force_download: bool,
        local_files_only: bool,
        token: str | bool | None,
        **_: Any,
    ) -> HubSelector:
        folder = Path(model_id)
        if not folder.is_dir():
            folder = fetch_model(
                model_id,
                revision=revision,
                cache_dir=cache_dir,
                force_download=force_download,
                local_files_only=local_files_only,
                token=token,
            )
        loaded = load_folder(folder)
        selector = cls(loaded.encoder)
        selector.card, selector.calibration = loaded.card, loaded.calibration
        selector.name = model_id
        return selector


def fetch_model(name: str, **options: Any) -> Path:
    """Download the three files of a model into the cache of the hub; nothing else."""
    try:
        return Path(_hub.snapshot_download(name, allow_patterns=[CONFIG, WEIGHTS, CARD], **options))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InvalidInput(
            "model",
            message=f"{name} is not a folder and cannot be downloaded from the hub: {reason}",
        ) from None
