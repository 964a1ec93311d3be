"""Devices by name, and the number of threads."""

import numpy as np
import pytest
import torch

from dgn import threads
from dgn.errors import InvalidInput
from dgn.training.devices import choose_threads, find_device, name_of, placed_on


@pytest.fixture(autouse=True)
def same_threads_afterwards() -> object:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_devices_that_exist() -> None:
    assert find_device("cpu") == torch.device("cpu")
    assert find_device("auto").type in ("cpu", "cuda")


@pytest.mark.parametrize("name", ["teapot", "meta", "cuda:x"])
def test_names_of_no_device(name: str) -> None:
    with pytest.raises(
        InvalidInput, match=f"device must be auto, cpu, cuda or cuda:N; got '{name}'"
    ):
        find_device(name)


def test_device_that_is_not_there() -> None:
    with pytest.raises(InvalidInput, match="The device cuda:99 is not available") as error:
        find_device("cuda:99")
    assert error.value.argument == "device"


def test_place_moves_arrays() -> None:
    found = placed_on("cpu")(np.array([1.5, 2.5], np.float32))
    assert torch.equal(found, torch.tensor([1.5, 2.5]))


def test_name_of_a_cpu_contains_its_threads() -> None:
    torch.set_num_threads(1)
    assert "CPU, 1 threads, torch" in name_of(torch.device("cpu"))


def test_threads_that_the_user_asked_for() -> None:
    assert choose_threads(2, 1.0) == 2
    assert torch.get_num_threads() == 2


def test_threads_are_chosen_by_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert choose_threads(0, 1.0) == 1
    monkeypatch.setattr(threads, "idle_cores", lambda: 2)
    assert choose_threads(0, 1e15) == 2


def test_environment_variable_is_a_choice_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    torch.set_num_threads(2)
    assert choose_threads(0, 1.0) == 2
