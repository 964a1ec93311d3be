"""One step of learning: learning rate, decays, gradient norm and moving average."""

import pytest
import torch

from dgn.learn import FitConfig, RunConfig, build_network
from dgn.learn.networks import SelectionNetwork
from dgn.learn.optimizer import Optimizer, learning_rate_share

FIT = {"optimizer": "adamw", "learning_rate": 0.1, "weight_decay": 0.01}


def network() -> SelectionNetwork:
    return build_network(RunConfig().with_settings({"widths": [3, 2]}), 4)


def optimizer(net: SelectionNetwork, **settings: object) -> Optimizer:
    return Optimizer(net, FitConfig(**{"learning_rate": 0.1, **settings}), total_steps=10)


def set_gradients(net: SelectionNetwork, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for weight in net.parameters():
        weight.grad = torch.randn(weight.shape, generator=generator)


def flat(net: SelectionNetwork) -> torch.Tensor:
    return torch.cat([weight.detach().flatten().clone() for weight in net.parameters()])


def test_shape_of_the_learning_rate() -> None:
    constant = FitConfig(warmup=4)
    assert [learning_rate_share(constant, step, 10) for step in (0, 1, 3, 9)] == [0.25, 0.5, 1, 1]
    linear = FitConfig(schedule="linear")
    assert learning_rate_share(linear, 5, 10) == pytest.approx(0.5)
    cosine = FitConfig(schedule="cosine")
    assert learning_rate_share(cosine, 5, 10) == pytest.approx(0.5)
    assert learning_rate_share(cosine, 10, 10) == pytest.approx(0.0)


def test_learning_rate_is_that_of_the_next_step() -> None:
    net = network()
    found = optimizer(net, schedule="linear")
    rates = []
    for step in range(3):
        rates.append(found.learning_rate)
        set_gradients(net, step)
        found.step()
    assert rates == pytest.approx([0.1, 0.09, 0.08])
    assert found.step_count == 3


def test_step_clears_the_gradients() -> None:
    net = network()
    found = optimizer(net)
    set_gradients(net, 0)
    before = flat(net)
    found.step()
    assert not torch.equal(flat(net), before)
    assert all(weight.grad is None or not weight.grad.any() for weight in net.parameters())


def test_norm_of_the_gradient_is_limited() -> None:
    net = network()
    found = optimizer(net, max_grad_norm=0.5)
    norms: list[float] = []
    found._optimizer.step = lambda: norms.append(
        float(torch.cat([weight.grad.flatten() for weight in net.parameters()]).norm())
    )
    set_gradients(net, 0)
    found.step()
    assert norms == pytest.approx([0.5], rel=1e-4)


def test_decay_to_start_pulls_the_weights_back() -> None:
    free, held = network(), network()
    start = flat(free)
    for net, settings in ((free, {}), (held, {"decay_to_start": 5.0})):
        found = optimizer(net, **settings)
        for step in range(5):
            set_gradients(net, step)
            found.step()
    assert (flat(held) - start).norm() < 0.7 * (flat(free) - start).norm()


def test_moving_average_is_used_within_its_block() -> None:
    net = network()
    found = optimizer(net, ema_decay=0.5)
    weights = [flat(net)]
    for step in range(2):
        set_gradients(net, step)
        found.step()
        weights.append(flat(net))
    own = flat(net)
    # At first the average is short: its decay is (1 + step) / (10 + step).
    first = weights[1] + 0.1 * (weights[0] - weights[1])
    expected = weights[2] + 2 / 11 * (first - weights[2])
    with found.averaged():
        torch.testing.assert_close(flat(net), expected)
    assert torch.equal(flat(net), own)


def test_restored_optimizer_continues_in_the_same_way() -> None:
    settings = {**FIT, "ema_decay": 0.9, "decay_to_start": 0.5, "schedule": "cosine"}
    net = network()
    found = optimizer(net, **settings)
    for step in range(3):
        set_gradients(net, step)
        found.step()
    saved = {name: tensor.clone() for name, tensor in found.tensors().items()}
    copy = network()
    other = optimizer(copy, **settings)
    copy.load_state_dict(net.state_dict())
    other.restore(saved, found.step_count)
    for one, run in ((net, found), (copy, other)):
        set_gradients(one, 9)
        run.step()
    assert torch.equal(flat(net), flat(copy))
    for name, tensor in found.tensors().items():
        assert torch.equal(tensor, other.tensors()[name]), name
