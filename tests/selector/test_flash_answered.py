"""FLASH that learns from all clients that answered, by hand."""

import re
from dataclasses import replace

import numpy as np
import pytest

from config_options import make_typed
from fedcohort.errors import OptionError
from fedcohort.selector.flash import Flash
from flash_harness import LOSSES, NAN, RAW_FEATURES, SECONDS, get_ridge, make_flash, play_losses
from selector_harness import World, list_cohorts, play_rounds


def make_flash_answered(**changes: object) -> Flash:
    return make_typed(Flash, "selector", "flash_answered", **changes)


@pytest.mark.parametrize(("context_kind", "x0"), [("fresh", [0.8, 0.9, 1.0, 0.1]), ("lagged", [1.0, 1.0, 1.0, 0.0])])
def test_all_answering_clients_are_learned_from(context_kind: str, x0: list[float]) -> None:
    """The story of flash_harness: in round 1 client 1 alone trains, in 1 s, and client 0's loss falls from .8 to .75.

    Its row is the context that it was not chosen by: its ratios, its 1 s, its reward of round 0.
    """
    answered = play_losses(make_flash_answered(context=context_kind, **RAW_FEATURES), LOSSES, SECONDS)[-1]
    plain = play_losses(make_flash(context=context_kind, **RAW_FEATURES), LOSSES, SECONDS)[-1]
    np.testing.assert_allclose(get_ridge(answered).V, get_ridge(plain).V + np.outer(x0, x0), rtol=1e-13)
    np.testing.assert_allclose(get_ridge(answered).b, get_ridge(plain).b + 0.05 * np.array(x0), rtol=1e-12)
    np.testing.assert_allclose(answered.measurements.r, [0.05, 0.4], rtol=1e-12)
    np.testing.assert_allclose(plain.measurements.r, [0.1, 0.4], rtol=1e-12)


def test_clients_without_two_answers_are_not_learned_from() -> None:
    history = [LOSSES[0], LOSSES[1], ([NAN, 0.1], [0.9, 0.6])]
    answered, plain = (
        play_losses(make(**RAW_FEATURES), history, SECONDS)[-1] for make in (make_flash_answered, make_flash)
    )
    np.testing.assert_array_equal(get_ridge(answered).V, get_ridge(plain).V)
    np.testing.assert_array_equal(answered.measurements.r, plain.measurements.r)


def test_if_all_clients_train_it_equals_flash() -> None:
    answered, plain_flash = (play_rounds(make(), World(cohort=12), 6) for make in (make_flash_answered, make_flash))
    assert list_cohorts(answered) == list_cohorts(plain_flash)
    np.testing.assert_array_equal(get_ridge(answered[-1].after).V, get_ridge(plain_flash[-1].after).V)


def test_no_additional_signal_is_queried() -> None:
    assert make_flash_answered().needs == make_flash().needs


@pytest.mark.parametrize("reward", ["global", "progress"])
def test_a_global_reward_is_rejected(reward: str) -> None:
    message = {
        "global": "reward must be client with credit=answered, which learns from each client's loss, got 'global'",
        "progress": "credit must be causal with reward=progress, a reward that the cohort shares, got 'answered'",
    }
    with pytest.raises(OptionError, match=re.escape(message[reward])):
        replace(make_flash_answered(), reward=reward)
