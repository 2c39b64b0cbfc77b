"""What makes a run's numbers say nothing about its method, or less: nothing moved the model, some never arrived."""

import math
from collections import Counter

import numpy as np

from fedcohort.record.history import History
from fedcohort.record.observer import RunInfo

RISEN = 10  # times a loss before training, above which training is said to have failed
ASKED = 3  # rounds in vain after which a client is said to be left out
NAMED = 3  # of these clients
LOSSES = ("test/loss", "server_val/loss", "clients/loss_mean")


def list_warnings(info: RunInfo, history: History) -> list[str]:
    """Return a line for each trouble; none where the numbers can be read as they stand."""
    return [*(_idle(info, history) or _left_out(info, history)), *(_diverged(history) or _risen(history))]


def _left_out(info: RunInfo, history: History) -> list[str]:
    """Say that the model has seen nothing of clients that were asked for it again and again."""
    asked = Counter(client for cohort in history.cohorts for client in cohort)
    for arrived in history.arrived:
        for client in arrived:
            asked.pop(client, None)
    vain = sorted(client for client, rounds in asked.items() if rounds >= ASKED)
    if not vain:
        return []
    few = f"{', '.join(map(str, vain[:NAMED]))}{', ...' if len(vain) > NAMED else ''}"
    why = f"they were late (deadline={info.choices.get('deadline', '?')})"
    why += ", or what they sent was left out" if _drops_updates(history) else ""
    return [
        f"{len(vain)} of {len(info.n_train)} clients were asked {ASKED} times or more and never arrived ({few}): "
        f"{why}; the model has learned nothing of theirs"
    ]


def _diverged(history: History) -> list[str]:
    """Say that the last loss isn't finite, though an accuracy always is."""
    lost = {name: value for name in LOSSES if not math.isfinite(value := history.final.get(name, 0.0))}
    if not lost:
        return []
    name = next(iter(lost))
    column = history.metrics[name]
    known = column.index[np.isfinite(column.to_numpy())]
    last = f"last finite at round {known[-1]}" if len(known) else "never finite"
    return [f"the model has diverged: {name} is {lost[name]} at round {history.measured[name][-1]}, {last}"]


def _risen(history: History) -> list[str]:
    """Say that a loss has become many times the untrained model's: finite, but on its way to nowhere."""
    for name in LOSSES:
        if name in history.final and (steps := history.measured[name])[0] == 0:
            first, last = float(history.metrics[name][0]), history.final[name]
            if last > RISEN * first > 0:
                said = f"{name} is {last:.3g} at round {steps[-1]}, {last / first:.0f} times the untrained model's"
                remedy = "inputs of one scale (dataset=folder has dataset.standardise=train)"
                return [f"{said}: a smaller client.lr may help, or {remedy}"]
    return []


def _idle(info: RunInfo, history: History) -> list[str]:
    rounds = [step for step in history.steps if step]
    if not rounds:
        return []
    if find_fruitful(history):
        weights = {fingerprint.rpartition(":")[2] for fingerprint in history.fingerprints}
        still = len(weights) == 1 and len(history.steps) > len(rounds)  # step 0 is among them
        return ["the model is still the one that the run began with: no update moved it"] if still else []
    words = {group: f"{group}={info.choices.get(group, '?')}" for group in ("availability", "selector", "deadline")}
    late = f"none of those selected was done in time ({words['deadline']})"
    reasons = {
        "what clients sent was left out, not finite or longer than update_limit allows": _drops_updates(history),
        "the server's steps were left out, not finite or longer than update_limit allows (a smaller server.lr may "
        "help)": any(map(len, history.arrived)),
    }
    if not any(map(len, history.cohorts)):
        reason = f"nobody was selected ({words['availability']}, {words['selector']})"
    else:
        reason = ", and ".join(name for name, holds in reasons.items() if holds) or late
    return [f"no update was applied in any of the {len(rounds)} rounds, the model is the untrained one: {reason}"]


def _drops_updates(history: History) -> bool:
    """Whether the update of some client was left out in some round."""
    dropped = history.metrics.get("round/dropped_nonfinite")
    return dropped is not None and bool(dropped.sum() > 0)


def find_fruitful(history: History) -> list[int]:
    """Return the rounds in which at least one update came, and the server's step was taken."""
    dropped = history.metrics.get("round/dropped_step")
    left_out = set() if dropped is None else set(dropped.index[dropped > 0])
    came = zip(history.steps, history.arrived, strict=True)
    return [step for step, arrived in came if step and len(arrived) and step not in left_out]
