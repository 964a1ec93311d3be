"""Selectors on the Hugging Face hub; needs `pip install 'dgn[hub]'`.

HubSelector is a Selector that also has `push_to_hub`, by huggingface_hub's own mixin.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dgn.errors import InvalidInput, require_extra

require_extra("the hub", package="huggingface_hub", extra="hub")

import huggingface_hub
from huggingface_hub import ModelHubMixin
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

from dgn.selector.pretrained import CARD, CONFIG, WEIGHTS, load_folder, save_encoder
from dgn.selector.selector import Selector

_hub: Any = huggingface_hub  # whose functions are typed in part only


class HubSelector(  # pyright: ignore[reportIncompatibleMethodOverride]
    ModelHubMixin,
    Selector,
    library_name="dgn",
    tags=["sentence-selection", "evidence", "submodular"],
):
    """A Selector with `from_pretrained`, `save_pretrained` and `push_to_hub` of the hub."""

    def _save_pretrained(self, save_directory: Path) -> None:
        save_encoder(self.encoder, save_directory)

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
        return cls(load_folder(folder))


def fetch_model(name: str, **options: Any) -> Path:
    """A model's three files, from the hub into its cache; nothing else is downloaded."""
    try:
        return Path(_hub.snapshot_download(name, allow_patterns=[CONFIG, WEIGHTS, CARD], **options))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InvalidInput(
            "model", found=f"{name}: {reason}", allowed="a folder, or a name on a hub within reach"
        ) from None
