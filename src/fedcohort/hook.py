"""The client half of a method: what it does to a gradient, what it sends, what it remembers.

Order in a training step: backward, then each hook's `correct` in the order aggregator, regulariser,
codec; the aggregator's hook sees the raw mini-batch gradient. A hook may also weigh the samples of each mini-batch
(`Weigher`); it is asked before the forward pass, and the engine then trains clients one by one, through autograd.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int64
from torch import Tensor

from fedcohort.contracts import broken, typed, vectors
from fedcohort.flat import Layout

Vector = Float[Tensor, "_p"]


@dataclass(frozen=True)
class ClientContext:
    """Whose job a hook works for.

    Attributes:
        layout: of the flat vectors.
        rng: makes the generator of (seed, purpose, round, client).
        samples: how many T_k has.
    """

    round: int
    client: int
    layout: Layout
    rng: Callable[[str], np.random.Generator]
    samples: int = 0


@dataclass(frozen=True)
class HookResult:
    """What a client sends beside its update, and what it keeps once the server has acknowledged it."""

    uploads: Mapping[str, Tensor] = field(default_factory=dict)
    stored: Mapping[str, Tensor] = field(default_factory=dict)


class Correction(Protocol):
    """What a hook does in one client's local training."""

    def correct(self, g: Vector, y: Vector) -> None:
        """Change the gradient `g` at the local model `y` in place, before the optimizer sees it."""
        ...

    def finish(self, y: Vector, steps: int, lr: float) -> HookResult:
        """Return what is sent and kept, after the last step; `lr`: the round's local learning rate."""
        ...


class ClientHook(Protocol):
    """A method's half at the client.

    Attributes:
        downloads, uploads: names of the vectors of P floats that travel beside the model.
        remembers: kept by clients.
    """

    @property
    def downloads(self) -> tuple[str, ...]: ...

    @property
    def uploads(self) -> tuple[str, ...]: ...

    @property
    def remembers(self) -> tuple[str, ...]: ...

    def begin(
        self, w: Vector, down: Mapping[str, Tensor], stored: Mapping[str, Tensor], ctx: ClientContext
    ) -> Correction:
        """Begin one client's local training.

        Args:
            w: the broadcast model, [P].
            down: the aggregator's broadcast, by name.
            stored: what this client kept, by name; nothing at first.
            ctx: whose job it is.
        """
        ...


class StepView(Protocol):
    """A mini-batch before its step, at the local model y.

    Derivatives are taken in eval mode and without bfloat16: asking for them moves no statistics and draws no dropout.
    """

    @property
    def positions(self) -> Int64[Tensor, "b"]:
        """The positions of the mini-batch's samples in T_k, whichever of them train this round."""
        ...

    def validation_gradient(self) -> Vector:
        """Return the gradient of the mean cross-entropy of a mini-batch of V_k, [P].

        Each call takes the next mini-batch.
        """
        ...

    def along(self, u: Vector) -> Float[Tensor, "b"]:
        """Return how fast each sample's objective l_j grows along u, [b]: <grad l_j(y), u>."""
        ...

    def curvature(self, u: Vector, weights: Float[Tensor, "b"]) -> Vector:
        """Return H u, [P], with H the Hessian of the mini-batch's objective under `weights`."""
        ...


@runtime_checkable
class Weighing(Correction, Protocol):
    """The correction of a `Weigher`."""

    def weigh(self, step: StepView) -> Float[Tensor, "b"]:
        """Return the factors of the samples' objectives in the mean that the step minimises, [b].

        A factor of 1 leaves an objective as it is.
        """
        ...


@runtime_checkable
class Weigher(ClientHook, Protocol):
    """A hook that weighs samples; a run has one at most.

    Attributes:
        per_sample: those of `remembers` that are a float for each sample of T_k, not P of them.
        averaged: those of `uploads` that are averaged with the weights of the updates, not added up.
        passes: forward passes that weighing costs, per sample and step.
    """

    @property
    def per_sample(self) -> tuple[str, ...]: ...

    @property
    def averaged(self) -> tuple[str, ...]: ...

    @property
    def passes(self) -> float: ...

    def begin(
        self, w: Vector, down: Mapping[str, Tensor], stored: Mapping[str, Tensor], ctx: ClientContext
    ) -> Weighing: ...


def weigher(hooks: Iterable[ClientHook]) -> Weigher | None:
    """Return the hook that weighs samples; None where there is none."""
    return next((hook for hook in hooks if isinstance(hook, Weigher)), None)


def averaged_uploads(hooks: Iterable[ClientHook]) -> tuple[str, ...]:
    """Return the names of the uploads that are averaged, not added up."""
    found = weigher(hooks)
    return () if found is None else found.averaged


def memory_sizes(hooks: Iterable[ClientHook], n_params: int, n_samples: int) -> dict[str, int]:
    """Return how many floats each name of `remembers` takes for a client; n_samples: the most that one has."""
    sizes: dict[str, int] = {}
    for hook in hooks:
        short = hook.per_sample if isinstance(hook, Weigher) else ()
        sizes |= {name: n_samples if name in short else n_params for name in hook.remembers}
    return sizes


def begin_all(
    hooks: Sequence[ClientHook],
    w: Vector,
    down: Mapping[str, Tensor],
    stored: Mapping[str, Tensor],
    ctx: ClientContext,
) -> list[Correction]:
    """Begin one client's local training for each hook; the arguments are those of `ClientHook.begin`.

    Raises `ComponentError` where a hook returns anything but a correction.
    """
    corrections = [hook.begin(w, down, stored, ctx) for hook in hooks]
    for hook, correction in zip(hooks, corrections, strict=True):
        for name in ("correct", "finish"):
            if not callable(getattr(correction, name, None)):
                raise broken(f"{_name(hook)}: the result of begin", f"an object with a method {name}", correction)
    return corrections


def finish_all(
    hooks: Sequence[ClientHook], corrections: Sequence[Correction], y: Vector, steps: int, lr: float
) -> list[HookResult]:
    """Return what each hook's client sends and keeps; y, steps, lr: as in `Correction.finish`.

    Raises `ComponentError` where that is not what the hook declares.
    """
    results = []
    for hook, correction in zip(hooks, corrections, strict=True):
        result = typed(f"{_name(hook)}: the result of finish", correction.finish(y, steps, lr), HookResult)
        if set(result.uploads) != set(hook.uploads):
            raise broken(f"{_name(hook)}: HookResult.uploads", f"a mapping with {sorted(hook.uploads)}", result.uploads)
        vectors(f"{_name(hook)}: HookResult.uploads", result.uploads, len(y))
        vectors(f"{_name(hook)}: HookResult.stored", result.stored)
        results.append(result)
    return results


def _name(hook: ClientHook) -> str:
    return f"the hook {type(hook).__module__}.{type(hook).__qualname__}"
