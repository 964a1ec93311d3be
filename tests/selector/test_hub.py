import pytest

import dgn
from claim_page import CLAIM, PAGE
from dgn.errors import InvalidInput
from dgn.selector.model_folder import CARD, CONFIG, SHIPPED, WEIGHTS
from models import shipped

pytest.importorskip("huggingface_hub", reason="huggingface_hub is in dgn[hub]")


def test_names_are_downloaded_and_read(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    asked: list[tuple[str, dict]] = []

    def download(name: str, **options: object) -> str:
        asked.append((name, options))
        return str(SHIPPED)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    selector = dgn.Selector.from_pretrained("user/name")
    assert selector.select(CLAIM, PAGE) == shipped().select(CLAIM, PAGE)
    assert asked == [("user/name", {"allow_patterns": [CONFIG, WEIGHTS, CARD]})]


def test_name_that_cannot_be_downloaded_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(InvalidInput, match=r"nobody/nothing .*cannot be downloaded") as raised:
        dgn.Selector.from_pretrained("nobody/nothing")
    assert raised.value.argument == "model"
