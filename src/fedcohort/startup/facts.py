"""The facts of a run that its parts may ask about (`part.Facts`): before the data are read, and with them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort.maths.pace_control import Paced
from fedcohort.part import Facts
from fedcohort.rng import Draws
from fedcohort.round.parts import Parts
from fedcohort.round.sampling import foresee

if TYPE_CHECKING:
    from fedcohort.data.federation import Federation


def before_data(parts: Parts, client_val: float, window_s: float, requires: Mapping[str, Mapping[str, Any]]) -> Facts:
    """Return what is known before the data are read.

    Args:
        parts: of the run.
        client_val: `split.client_val`.
        window_s: `deadline.window_s`.
        requires: what aliases stand for, by group.
    """
    return Facts(
        timed_device=parts.device.timed,
        time_passes=parts.device.timed or window_s > 0,
        plain_client=parts.client.plain and not parts.regulariser.hooks,
        linear_client=parts.client.linear,
        undecayed_client=parts.client.weight_decay == 0,
        equal_work=any("client.steps" in wanted for wanted in requires.values()),
        whole_update=not parts.codec.hooks,
        given_labels=not parts.objective.uses_reference,
        mean_objective=parts.objective.averages,
        proxy=parts.proxy.holds,
        client_val=client_val > 0,
        relative_advice=not parts.selector.absolute,
        unadvised_weights=not parts.selector.weighs,
        plain_server=parts.server.plain,
        announced_deadline=parts.deadline.announces,
        fitting_work=parts.deadline.partial_work or not parts.deadline.announces,
        epochs=parts.client.steps is None,
        foreseen_samples=parts.samples.foreseen,
        loss_lists=parts.samples.tells_losses,
        mini_batches=parts.client.batch is not None,
        several_steps=parts.client.takes_several(),
        device_seconds=parts.device.in_seconds,
        one_pace=len({part.control.w for part in (parts.samples, parts.deadline) if isinstance(part, Paced)}) < 2,
        one_loss=not parts.selector.robust_loss
        or not parts.objective.robust_loss
        or parts.selector.robust_loss == parts.objective.robust_loss,
    )


def with_data(known: Facts, parts: Parts, cohort: int, federation: "Federation") -> Facts:
    """Add the facts that are known once the clients are there."""
    n, timed = federation.n_train, parts.device.timed
    largest, draws = int(n.argmax()), Draws(0, federation.n_clients)
    used = foresee(parts.samples, largest, int(n[largest]), draws) if parts.samples.foreseen else None
    return replace(
        known,
        attributes=federation.group_counts is not None,
        images=federation.has_images,
        classes=federation.targets.single,
        client_val=bool((np.diff(federation.val.offsets) > 0).all()),
        clean_labels=not federation.noise_rate.any(),
        several_steps=parts.client.takes_several(int(n[largest]) if used is None else len(used)),
        asked=parts.deadline.ask(cohort),
        arriving=parts.deadline.most(cohort) if timed else parts.deadline.ask(cohort),
        absence=_absence(parts, cohort, federation.n_clients),
    )


def _absence(parts: Parts, cohort: int, n_clients: int) -> tuple[str, ...]:
    """Return the words by which everybody would come in every round, where some are away; nobody is late in no time."""
    late = parts.deadline.bounded and parts.device.timed
    places = cohort if late else parts.deadline.ask(cohort)
    away = {
        "cohort=clients": places < n_clients and not parts.selector.uncapped,
        "availability=always": not parts.availability.always,
        "deadline=wait_for_all": late,
    }
    return tuple(word for word, away_for_it in away.items() if away_for_it)
