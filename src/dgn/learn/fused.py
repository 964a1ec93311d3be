"""The layers as one operation with a gradient of its own: in C on a CPU, in Triton on a GPU.

Autograd keeps several arrays of [batch, items, features] for every layer. This operation keeps
none: its gradient computes again what the layers computed. It knows the coverage functions of
`dgn.core.native.FORMS` with added levels, the relaxations of dgn, and float32; for everything else,
and for second derivatives, `dgn.learn.layers` has the plain form.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from dgn.core import native
from dgn.core.native import Coverage, SoftSets
from dgn.core.numerics import lowest_log
from dgn.errors import InvalidInput
from dgn.learn.relaxations import Gumbel, Relaxation, Softmax, StraightThrough

_FORMS = ("log1p", "sqrt", "linear", "saturated", "one_minus_exp", "power")
"""Functions of a level to which selected items add their features."""

# Constants, which torch.compile can trace.
_HAS_KERNELS = native.is_available()
_HAS_TRITON = find_spec("triton") is not None


def can_fuse(coverage: Coverage | None, features: Tensor, relaxation: Relaxation) -> bool:
    """Whether the operation knows this function, these features and this relaxation."""
    if coverage is None or coverage.form not in _FORMS or features.dtype != torch.float32:
        return False
    if torch._C._are_functorch_transforms_active():  # pyright: ignore
        return False
    inner = relaxation.inner if type(relaxation) is StraightThrough else relaxation
    if type(inner) not in {Softmax, Gumbel}:
        return False
    if features.is_cuda:
        if not _HAS_TRITON:
            return False
        from dgn.core.native.triton import layers

        return layers.fits(features.shape[1], features.shape[2])
    return features.device.type == "cpu" and _HAS_KERNELS


def on_gpu(tensor: Tensor) -> bool:
    """Whether our kernels for a GPU can read this tensor."""
    if not tensor.is_cuda or not _HAS_TRITON or torch.compiler.is_compiling():
        return False
    return not torch._C._are_functorch_transforms_active()  # pyright: ignore


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
    weights: Any = coverage.weights
    weights = features.new_ones(1, width) if weights is None else weights.to(features.dtype)
    found: Any = _unfold(
        features,
        mask,
        log_prior,
        weights.expand(batch, width),
        level.expand(batch, width),
        _noise_of(relaxation, features, layers),
        coverage.form,
        coverage.parameter,
        temperature,
        layers,
        type(relaxation) is StraightThrough,
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
def _unfold(features: Tensor, *others: Any) -> Any:
    """What the layers choose; see `SoftSets.unfold`."""
    if features.is_cuda:
        from dgn.core.native.triton import layers

        return layers.unfold(features, *others)
    if bool((features < 0).any()):
        raise negative_features(features)
    found = _soft_sets(features, *others).unfold(torch.get_num_threads())
    return tuple(map(_tensor, found))


@torch.library.custom_op(
    "dgn::unfold_slope",
    mutates_args=(),
    schema=f"({_SETS}, {_SETTINGS}, Tensor[] chosen, Tensor[] gradients) -> "
    f"({', '.join(['Tensor'] * 4)})",
)
def _unfold_slope(features: Tensor, *others: Any) -> Any:
    """The gradients of features, weights, level and log prior; see `SoftSets.slope`."""
    if features.is_cuda:
        from dgn.core.native.triton import layers

        return layers.slope(features, *others)
    *sets, chosen, gradients = others
    tensors, settings = sets[:4], sets[4:]
    found = _soft_sets(features, *tensors, None, *settings).slope(
        tuple(map(_array, chosen)), tuple(map(_array, gradients)), torch.get_num_threads()
    )
    return tuple(map(_tensor, found))


def _soft_sets(*arguments: Any) -> SoftSets:
    arrays, settings = (_array(one) for one in arguments[:6]), arguments[6:]
    return SoftSets(*arrays, *settings, lowest=lowest_log(arguments[0]))


def _array(tensor: Tensor | None) -> Any:
    return None if tensor is None else tensor.detach().numpy()


def _tensor(array: Any) -> Tensor:
    return torch.from_numpy(array)


def negative_features(features: Tensor) -> InvalidInput:
    """The error of features that are not all at least 0."""
    return InvalidInput(
        "features",
        found=f"{float(features.min()):g}",
        allowed="at least 0 everywhere; apply ReLU or softplus to them",
    )


@_unfold.register_fake
def _(features: Tensor, *others: Any) -> Any:
    batch, items, width = features.shape
    layers = others[-2]
    by_layer = [features.new_empty(batch, layers, items) for _ in range(4)]
    return (*by_layer, features.new_empty(batch, items), features.new_empty(batch, width))


@_unfold_slope.register_fake
def _(features: Tensor, *_: Any) -> Any:
    batch, items, width = features.shape
    shapes = ((batch, items, width), (batch, width), (batch, width), (batch, items))
    return tuple(features.new_empty(*shape) for shape in shapes)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.settings = inputs[6:]
    ctx.save_for_backward(*inputs[:5], *output[:4])


def _backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        raise InvalidInput(
            "create_graph",
            message="The fused layers have no second derivatives; build the layers with "
            "UnfoldedGreedy(fused=False).",
        )
    saved = ctx.saved_tensors
    asked = [gradients[0], gradients[1], gradients[4], gradients[5]]
    found: Any = _unfold_slope(*saved[:5], *ctx.settings, list(saved[5:]), asked)
    features, weights, level, log_prior = found
    return features, None, log_prior, weights, level, None, *([None] * len(ctx.settings))


_unfold.register_autograd(_backward, setup_context=_keep)
