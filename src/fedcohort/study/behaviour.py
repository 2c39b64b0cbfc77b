"""Fingerprint of the first rounds of a run, by which the behaviour of two versions of the code is compared.

A reference run repeats the first 8 rounds of a run: a budget only extends a run, so it has the same rounds.
The fingerprint of a run is taken from its own journal. `fedcohort study check` makes the reference runs with today's
code, one for each condition and each commit, and compares two things.

    fingerprint   "<digest of cohorts and arrivals of rounds 1 to 8>:<server_val/loss of each, four digits>"
    curve         the study's metric, virtual seconds and bytes of these rounds, from `curves.parquet`

Names, comments, the order or spelling of options, and measured time do not count. Digits are compared with a tolerance,
so that another processor does not count as other code: of 958 runs on two processors none differs. A run without a
fingerprint, from older code, is compared by its curve.

The comparison does not show three things. A change may act after round 8, such as the end of a longer warm-up. It may
change no cohort and no digit above the tolerance. And a difference need not be a fault: where rounding decides between
two clients, it may be a difference between processors.
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
TOLERANCES = {  # relative and absolute; curves of older versions hold costs in single precision
    "value": (0.0, 5e-3),
    "virtual_s": (1e-5, 0.0),
    "bytes": (1e-5, 0.0),
}


def fingerprint(history: History) -> str:
    """Return the fingerprint of the first `ROUNDS` rounds of a run."""
    rounds = zip(history.steps, history.cohorts, history.arrived, strict=True)
    text = json.dumps([[step, list(cohort), list(arrived)] for step, cohort, arrived in rounds if 0 < step <= ROUNDS])
    steps = [step for step in history.measured.get(LOSS, ()) if step <= ROUNDS]
    losses = ",".join(f"{history.metrics[LOSS].loc[step]:.4g}" for step in steps)
    return f"{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}:{losses}"


def difference(earlier: tuple[str, "Trajectory"], current: tuple[str, "Trajectory"]) -> str:
    """Name the differences between two runs in their first rounds, as "cohorts, bytes from round 3"; "" for none.

    Args:
        earlier: fingerprint, "" if there is none, and curve of the first run.
        current: the same of the second run.
    """
    differences = _compare_curves(earlier[1], current[1])
    if earlier[0] and current[0]:
        (digest, losses), (digest_now, losses_now) = (text.split(":") for text in (earlier[0], current[0]))
        differences = ["cohorts"] * (digest != digest_now) + differences
        before, after = _numbers(losses), _numbers(losses_now)
        if before.shape != after.shape or not np.isclose(before, after, rtol=LOSS_TOLERANCE, equal_nan=True).all():
            differences.append(LOSS)
    return ", ".join(differences)


def _numbers(text: str) -> Values:
    return np.array([float(number) for number in text.split(",") if number])


def _compare_curves(earlier: "Trajectory", current: "Trajectory") -> list[str]:
    """Name the columns that differ in the rounds 1 to `ROUNDS`, each with the first round that does."""
    a, b = ((curve.steps > 0) & (curve.steps <= ROUNDS) for curve in (earlier, current))
    if not np.array_equal(earlier.steps[a], current.steps[b]):
        return ["evaluated rounds"]
    differences = []
    for name, (relative, absolute) in TOLERANCES.items():
        x, y = getattr(earlier, name)[a], getattr(current, name)[b]
        close = np.isclose(x, y, rtol=relative, atol=absolute, equal_nan=True)
        if not close.all():
            differences.append(f"{name} from round {earlier.steps[a][~close][0]:.0f}")
    return differences
