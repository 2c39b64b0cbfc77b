"""Whether today's code behaves as the code that computed a row: the fingerprint of a short reference run.

The reference run is the first 8 rounds of the row's own run: a budget only extends a run, so it has the same rounds.
A row's fingerprint is taken from its own journal and costs nothing. `fedcohort study check` runs the 8 rounds again
with today's code, once for each condition and each commit that has rows of it, and compares.

    fingerprint   "<digest of cohorts and arrivals of rounds 1 to 8>:<server_val/loss of each, four digits>"
    curve         the study's metric, virtual seconds and bytes of the same rounds, as `curves.parquet` has them

Names, comments, and the order or spelling of options don't enter, and measured time doesn't either. Digits are compared
with a tolerance, so that other processors don't count as other code: of 958 runs that two processors had done, none
differs. A row without a fingerprint, of older code, is compared by its curve.

It can't tell what first acts after round 8 (the end of a longer warm-up), what moves no cohort and no digit above the
tolerance, nor whether a difference is a fault. Where rounding decides between two clients, it may report a difference
of processors.
"""

import hashlib
import json
from typing import TYPE_CHECKING

import numpy as np

from fedcohort.record.history import History
from fedcohort.types import Values

if TYPE_CHECKING:
    from fedcohort.study.measure import Trajectory

ROUNDS = 8
LOSS = "server_val/loss"
LOSS_TOLERANCE = 5e-3  # relative
VALUE_TOLERANCE = 5e-3  # absolute, of the study's metric
COST_TOLERANCE = 1e-5  # relative, of virtual seconds and bytes, which curves hold in single precision


def fingerprint(history: History) -> str:
    """Return the fingerprint of the first `ROUNDS` rounds of a run."""
    rounds = zip(history.steps, history.cohorts, history.arrived, strict=True)
    text = json.dumps([[step, list(cohort), list(arrived)] for step, cohort, arrived in rounds if 0 < step <= ROUNDS])
    steps = [step for step in history.measured.get(LOSS, ()) if step <= ROUNDS]
    losses = ",".join(f"{history.metrics[LOSS].loc[step]:.4g}" for step in steps)
    return f"{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}:{losses}"


def difference(then: tuple[str, "Trajectory"], now: tuple[str, "Trajectory"]) -> str:
    """Name what differs between two runs in their first rounds, as "cohorts, bytes from round 3"; "" for nothing.

    then, now: fingerprint, "" where there is none, and curve.
    """
    found = _compare_curves(then[1], now[1])
    if then[0] and now[0]:
        (choices, losses), (choices_now, losses_now) = (each.split(":") for each in (then[0], now[0]))
        found = ["cohorts"] * (choices != choices_now) + found
        before, after = _numbers(losses), _numbers(losses_now)
        if before.shape != after.shape or not np.isclose(before, after, rtol=LOSS_TOLERANCE, equal_nan=True).all():
            found.append(LOSS)
    return ", ".join(found)


def _numbers(text: str) -> Values:
    return np.array([float(each) for each in text.split(",") if each])


def _compare_curves(then: "Trajectory", now: "Trajectory") -> list[str]:
    """Name the columns that differ in the rounds 1 to `ROUNDS`, each with the first round that does."""
    a, b = ((curve.steps > 0) & (curve.steps <= ROUNDS) for curve in (then, now))
    if not np.array_equal(then.steps[a], now.steps[b]):
        return ["evaluated rounds"]
    found = []
    for name, relative, absolute in (
        ("value", 0.0, VALUE_TOLERANCE),
        ("virtual_s", COST_TOLERANCE, 0.0),
        ("bytes", COST_TOLERANCE, 0.0),
    ):
        x, y = getattr(then, name)[a], getattr(now, name)[b]
        close = np.isclose(x, y, rtol=relative, atol=absolute, equal_nan=True)
        if not close.all():
            found.append(f"{name} from round {then.steps[a][~close][0]:.0f}")
    return found
