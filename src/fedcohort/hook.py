"""Client hooks: the part of a method that runs in the local training of each client.

A hook corrects gradients, uploads vectors in addition to the update, and stores vectors at the client. In a training
step, `backward` is followed by `correct` of each hook in the order aggregator, regulariser, codec, so that the
aggregator's hook sees the raw mini-batch gradient. A hook may also weigh the samples of each mini-batch (`Weigher`). It
does so before the forward pass, and the engine then trains one client at a time with autograd.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int64
from torch import Tensor

from fedcohort.contracts import check_type, check_vectors_by_name, contract_error
from fedcohort.flat import Layout

Vector = Float[Tensor, "_p"]
NamedVectors = Mapping[str, Tensor]  # vectors by name


@dataclass(frozen=True)
class ClientContext:
    """The client and the round in which a hook works.

    Attributes:
        round: number of the round, from 0.
        client: id of the client.
        layout: positions of the network's tensors in the flat vectors.
        rng: function that returns the random generator of this client and round for a purpose, a text.
        samples: number of training samples of the client.
    """

    round: int
    client: int
    layout: Layout
    rng: Callable[[str], np.random.Generator]
    samples: int = 0


@dataclass(frozen=True)
class HookResult:
    """The vectors that a hook returns after local training.

    Attributes:
        uploads: vectors that the client sends in addition to its update, by name, [P] each.
        stored: vectors that the client keeps once the server has acknowledged the update, by name: [P] each, or one
            number per training sample (`Weigher.per_sample`).
    """

    uploads: Mapping[str, Tensor] = field(default_factory=dict)
    stored: Mapping[str, Tensor] = field(default_factory=dict)


class Correction(Protocol):
    """A change of each gradient in the local training of one client, by a hook; P is the number of parameters.

    A class may have a static method `stack`, which saves time if many clients are trained at once. It takes a list of
    corrections, one for each client, and returns one correction. The method `correct` of this correction changes the
    gradients [k, P] of the first k clients at the models [k, P], with the same effect as `correct` of each. Each single
    correction still has to `finish`.
    """

    def correct(self, g: Vector, y: Vector) -> None:
        """Change the gradient g [P] at the local model y [P] in place, before the optimizer uses it."""

    def finish(self, y: Vector, steps: int, lr: float) -> HookResult:
        """Return the vectors to upload and to store, after the last step of the client.

        Args:
            y: the local model after the last step, [P].
            steps: number of optimizer steps done.
            lr: local learning rate of the round.
        """
        return HookResult()


class ClientHook(Protocol):
    """The part of a method that runs at the clients. A subclass declares the vectors that it uses.

    Attributes:
        downloads: names of the vectors that clients receive in addition to the model, one number per parameter, [P]
            each.
        uploads: names of the vectors that clients send in addition to the update, [P] each.
        remembers: names of the vectors that clients store between rounds, [P] each.
    """

    @property
    def downloads(self) -> tuple[str, ...]:
        return ()

    @property
    def uploads(self) -> tuple[str, ...]:
        return ()

    @property
    def remembers(self) -> tuple[str, ...]:
        return ()

    def begin(self, w: Vector, broadcast: NamedVectors, stored: NamedVectors, ctx: ClientContext) -> Correction:
        """Return the correction of the gradients in one client's local training, before its first step.

        Args:
            w: the broadcast model, [P].
            broadcast: vectors of `downloads` that the server sent with the model, by name, [P] each.
            stored: vectors that this client has stored, by name; empty at first.
            ctx: the client and the round.
        """


class StepView(Protocol):
    """A mini-batch of b samples before its optimizer step, at the local model y with P parameters.

    Derivatives are computed in eval mode and without bfloat16, so that they change no statistics and draw no dropout.
    """

    @property
    def positions(self) -> Int64[Tensor, "b"]:
        """Positions of the mini-batch's samples in the client's training set, int64 [b]."""

    def validation_gradient(self) -> Vector:
        """Return the gradient of the mean cross-entropy of the client's next validation mini-batch, [P]."""

    def derivative_along(self, u: Vector) -> Float[Tensor, "b"]:
        """Return the derivative of each sample's objective along u [P], <grad l_j(y), u> for sample j, [b]."""

    def hessian_product(self, u: Vector, weights: Float[Tensor, "b"]) -> Vector:
        """Return H u, [P], with u [P] and H the Hessian of the step's loss, whose samples have the `weights` [b]."""


@runtime_checkable
class Weighing(Correction, Protocol):
    """A correction that also weights the samples of each mini-batch, in the local training of one client."""

    def weigh(self, step: StepView) -> Float[Tensor, "b"]:
        """Return the weight of each sample's objective in the mean that the step `step` minimises, [b]."""


@runtime_checkable
class Weigher(ClientHook, Protocol):
    """A hook that weights samples. A run has at most one.

    Attributes:
        per_sample: names in `remembers` whose vector has one float per training sample of the client instead of one per
            parameter.
        averaged: names in `uploads` whose vectors the server averages, weighted as the updates are, instead of summing.
        passes: cost of the weights, in forward passes per sample and step.
    """

    @property
    def per_sample(self) -> tuple[str, ...]: ...

    @property
    def averaged(self) -> tuple[str, ...]: ...

    @property
    def passes(self) -> float: ...

    def begin(self, w: Vector, broadcast: NamedVectors, stored: NamedVectors, ctx: ClientContext) -> Weighing: ...


def find_weigher(hooks: Iterable[ClientHook]) -> Weigher | None:
    """Return the hook that weights samples out of the run's `hooks`; None if there is none."""
    return next((client_hook for client_hook in hooks if isinstance(client_hook, Weigher)), None)


def list_averaged_uploads(hooks: Iterable[ClientHook]) -> tuple[str, ...]:
    """Return the names of the uploads of `hooks` that the server averages instead of summing them."""
    weigher = find_weigher(hooks)
    return () if weigher is None else weigher.averaged


def count_stored_floats(hooks: Iterable[ClientHook], n_params: int, n_samples: int) -> dict[str, int]:
    """Return the number of floats that a client stores under each name of `remembers`.

    Args:
        hooks: all hooks of the run.
        n_params: number of trainable parameters.
        n_samples: number of training samples of the largest client.
    """
    floats_by_vector: dict[str, int] = {}
    for hook in hooks:
        per_sample = hook.per_sample if isinstance(hook, Weigher) else ()
        floats_by_vector |= {k: n_samples if k in per_sample else n_params for k in hook.remembers}
    return floats_by_vector


def begin_hooks(
    hooks: Sequence[ClientHook], w: Vector, broadcast: NamedVectors, stored: NamedVectors, ctx: ClientContext
) -> list[Correction]:
    """Return each hook's correction for one client's local training, in the order of `hooks`.

    The other arguments are those of `ClientHook.begin`.

    Raises:
        ComponentError: if a hook returns something else than a correction.
    """
    corrections = [client_hook.begin(w, broadcast, stored, ctx) for client_hook in hooks]
    for client_hook, correction in zip(hooks, corrections, strict=True):
        for method_name in ("correct", "finish"):
            if not callable(getattr(correction, method_name, None)):
                raise contract_error(
                    f"{_describe_hook(client_hook)}: the result of begin",
                    f"an object with a method {method_name}",
                    correction,
                )
    return corrections


def finish_hooks(
    hooks: Sequence[ClientHook], corrections: Sequence[Correction], y: Vector, steps: int, lr: float
) -> list[HookResult]:
    """Return the vectors of each hook after a client's last step, in the order of `hooks`.

    `corrections` are those that `begin_hooks` returned. The other arguments are those of `Correction.finish`.

    Raises:
        ComponentError: if the vectors are not those that the hook declares.
    """
    hook_results = []
    for hook, correction in zip(hooks, corrections, strict=True):
        hook_description = _describe_hook(hook)
        result_name, hook_result = f"{hook_description}: the result of finish", correction.finish(y, steps, lr)
        check_type(result_name, hook_result, HookResult)
        if set(hook_result.uploads) != set(hook.uploads):
            raise contract_error(
                f"{hook_description}: HookResult.uploads", f"a mapping with {sorted(hook.uploads)}", hook_result.uploads
            )
        check_vectors_by_name(f"{hook_description}: HookResult.uploads", hook_result.uploads, len(y))
        check_vectors_by_name(f"{hook_description}: HookResult.stored", hook_result.stored)
        hook_results.append(hook_result)
    return hook_results


def _describe_hook(client_hook: ClientHook) -> str:
    return f"the hook {type(client_hook).__module__}.{type(client_hook).__qualname__}"
