"""The layers as one operation with a gradient of its own: in C on a CPU, in Triton on a GPU.

Autograd keeps several arrays of [batch, items, features] for every layer. This operation keeps
none: its gradient computes again what the layers computed. It knows the coverage functions of
`dgn.kernels.FORMS` with added levels, the relaxations of dgn, and float32; for everything else,
and for second derivatives, `dgn.unfolding.layers` has the plain form.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor

from dgn import kernels
from dgn.errors import InvalidInput
from dgn.kernels import Coverage, SoftSets
from dgn.numerics import lowest_log
from dgn.unfolding.relaxations import Gumbel, Relaxation, Softmax, StraightThrough

_FORMS = ("log1p", "sqrt", "linear", "saturated", "one_minus_exp", "power")
"""Functions of a level to which selected items add their features."""

_HAS_KERNELS = kernels.is_available()  # a constant, which torch.compile can trace

_Choices: TypeAlias = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]
_Gradients: TypeAlias = tuple[Tensor, Tensor, Tensor, Tensor]


def can_fuse(coverage: Coverage | None, features: Tensor, relaxation: Relaxation) -> bool:
    """Whether the operation knows this function, these features and this relaxation."""
    if coverage is None or coverage.form not in _FORMS or features.dtype != torch.float32:
        return False
    if torch._C._are_functorch_transforms_active():  # pyright: ignore
        return False
    inner = relaxation.inner if type(relaxation) is StraightThrough else relaxation
    if type(inner) not in {Softmax, Gumbel}:
        return False
    if features.device.type == "cuda":
        from dgn.gpu import layers as gpu_layers

        return gpu_layers.fits(features.shape[1], features.shape[2])
    return features.device.type == "cpu" and _HAS_KERNELS


def unfold(
    coverage: Coverage,
    features: Tensor,
    mask: Tensor,
    log_prior: Tensor,
    level: Tensor,
    relaxation: Relaxation,
    temperature: float,
    layers: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """All layers at once.

    Args:
        coverage: The set function.
        features: [batch, items, features], at least 0, zeros for padding.
        mask: [batch, items], False for padding.
        log_prior: [batch, items].
        level: [batch, features], where the set function begins.
        relaxation: How a layer chooses.
        temperature: What gains are divided by.
        layers: The number of layers.

    Returns:
        log p and log(1 − p), [batch, layers, items]; what of each item is outside the set at the
        end, [batch, items]; and the level at the end, [batch, features].

    Raises:
        InvalidInput: A feature is negative. On a GPU this is an asynchronous assertion.
    """
    batch, _, width = features.shape
    weights = coverage.weights
    weights = features.new_ones(1, width) if weights is None else weights.to(features.dtype)
    noise = _noise_of(relaxation, features, layers)
    found = cast(
        "_Choices",
        _unfold(
            features,
            mask,
            log_prior,
            weights.expand(batch, width),
            level.expand(batch, width),
            noise,
            coverage.form,
            coverage.parameter,
            temperature,
            layers,
            type(relaxation) is StraightThrough,
        ),
    )
    return found[0], found[1], found[4], found[5]


def _noise_of(relaxation: Relaxation, features: Tensor, layers: int) -> Tensor | None:
    """The noise of every layer, drawn as the layers one by one draw it."""
    inner = relaxation.inner if isinstance(relaxation, StraightThrough) else relaxation
    if not isinstance(inner, Gumbel):
        return None
    like = torch.empty_like(features[..., 0], requires_grad=False)
    return torch.stack([inner.noise(like) for _ in range(layers)], dim=1)


_SETTINGS = "str form, float parameter, float temperature, int layers, bool is_hard"
_SETS = "Tensor features, Tensor mask, Tensor log_prior, Tensor weights, Tensor level"


@torch.library.custom_op(
    "dgn::unfold",
    mutates_args=(),
    schema=f"({_SETS}, Tensor? noise, {_SETTINGS}) -> ({', '.join(['Tensor'] * 6)})",
)
def _unfold(
    features: Tensor,
    mask: Tensor,
    log_prior: Tensor,
    weights: Tensor,
    level: Tensor,
    noise: Tensor | None,
    form: str,
    parameter: float,
    temperature: float,
    layers: int,
    is_hard: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    if features.is_cuda:
        from dgn.gpu import layers as gpu_layers

        return gpu_layers.unfold(
            features, mask, log_prior, weights, level, noise, form, parameter, temperature, layers,
            is_hard,
        )
    if bool((features < 0).any()):
        raise negative_features(features)
    sets = _soft_sets(
        features, mask, log_prior, weights, level, noise, form, parameter, temperature, layers,
        is_hard,
    )
    found = sets.unfold(torch.get_num_threads())
    return cast("_Choices", tuple(map(torch.from_numpy, found)))


@torch.library.custom_op(
    "dgn::unfold_slope",
    mutates_args=(),
    schema=f"({_SETS}, Tensor[] chosen, Tensor[] gradients, {_SETTINGS}) -> "
    f"({', '.join(['Tensor'] * 4)})",
)
def _unfold_slope(
    features: Tensor,
    mask: Tensor,
    log_prior: Tensor,
    weights: Tensor,
    level: Tensor,
    chosen: list[Tensor],
    gradients: list[Tensor],
    form: str,
    parameter: float,
    temperature: float,
    layers: int,
    is_hard: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    if features.is_cuda:
        from dgn.gpu import layers as gpu_layers

        return gpu_layers.slope(
            features, mask, log_prior, weights, level, chosen, gradients, form, parameter,
            temperature, layers, is_hard,
        )
    sets = _soft_sets(
        features, mask, log_prior, weights, level, None, form, parameter, temperature, layers,
        is_hard,
    )
    found = sets.slope(
        tuple(_array(one) for one in chosen),
        tuple(_array(one) for one in gradients),
        torch.get_num_threads(),
    )
    return cast("_Gradients", tuple(map(torch.from_numpy, found)))


def _soft_sets(
    features: Tensor,
    mask: Tensor,
    log_prior: Tensor,
    weights: Tensor,
    level: Tensor,
    noise: Tensor | None,
    form: str,
    parameter: float,
    temperature: float,
    layers: int,
    is_hard: bool,
) -> SoftSets:
    arrays = (_array(one) for one in (features, mask, log_prior, weights, level))
    return SoftSets(
        *arrays,
        noise=None if noise is None else _array(noise),
        form=form,
        parameter=parameter,
        layers=layers,
        temperature=temperature,
        lowest=lowest_log(features),
        is_hard=is_hard,
    )


def _array(tensor: Tensor) -> Any:
    return tensor.detach().numpy()


def negative_features(features: Tensor) -> InvalidInput:
    """The error of features that are not all at least 0."""
    return InvalidInput(
        "features",
        found=f"{float(features.min()):g}",
        allowed="at least 0 everywhere; apply ReLU or softplus to them",
    )


@_unfold.register_fake
def _(features: Tensor, *others: Any) -> _Choices:
    batch, items, width = features.shape
    layers = others[-2]
    by_layer = [features.new_empty(batch, layers, items) for _ in range(4)]
    after = [features.new_empty(batch, items), features.new_empty(batch, width)]
    return cast("_Choices", (*by_layer, *after))


@_unfold_slope.register_fake
def _(features: Tensor, *_: Any) -> _Gradients:
    batch, items, width = features.shape
    return (
        features.new_empty(batch, items, width),
        features.new_empty(batch, width),
        features.new_empty(batch, width),
        features.new_empty(batch, items),
    )


def _keep(ctx: Any, inputs: tuple[Any, ...], output: _Choices) -> None:
    tensors, ctx.settings = inputs[:5], inputs[6:]
    ctx.noise = inputs[5]
    ctx.save_for_backward(*tensors, *output[:4])


def _backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
    saved = ctx.saved_tensors
    tensors, chosen = saved[:5], saved[5:]
    wanted = [gradients[0], gradients[1], gradients[4], gradients[5]]
    found = _unfold_slope(*tensors, list(chosen), wanted, *ctx.settings)
    features, weights, level, log_prior = cast("_Gradients", found)
    return (features, None, log_prior, weights, level, None, *([None] * len(ctx.settings)))


_unfold.register_autograd(_backward, setup_context=_keep)
