import pytest

from dgn.cli.main import main


@pytest.mark.parametrize("seeds", ["0", "-1", "many", "1.5"])
def test_a_wrong_number_of_seeds_is_explained(
    seeds: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["demo", f"--seeds={seeds}"])
    assert stopped.value.code == 2
    assert "allowed: a whole number of at least 1" in capsys.readouterr().err


def test_version_and_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out.startswith("dgn 0.")
    with pytest.raises(SystemExit) as stopped:
        main([])
    assert stopped.value.code == 2


def test_ctrl_c_ends_quietly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import dgn.cli.demo

    def interrupted(_seeds: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(dgn.cli.demo, "show_demo", interrupted)
    assert main(["demo"]) == 130
    assert capsys.readouterr().err == "dgn: stopped\n"
