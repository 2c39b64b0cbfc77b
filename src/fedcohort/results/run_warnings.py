"""Warnings about runs whose numbers say little about the method: no update moved the model, or training diverged."""

import math
from collections import Counter

import numpy as np

from fedcohort.record.history import History
from fedcohort.record.observer import RunInfo

RISE_FACTOR = 10  # factor over the untrained model's loss above which a warning is given
MIN_SELECTIONS = 3  # selections without an arrival after which a client is reported
MAX_NAMED_CLIENTS = 3  # clients that the warning names
LOSSES = ("test/loss", "server_val/loss", "clients/loss_mean")


def list_warnings(info: RunInfo, history: History) -> list[str]:
    """Return one line for each problem; none if the numbers can be read as they are."""
    return [*(_no_update(info, history) or _never_arrived(info, history)), *(_diverged(history) or _loss_rose(history))]


def _never_arrived(info: RunInfo, history: History) -> list[str]:
    """Report clients that were selected several times and whose updates never arrived."""
    selections = Counter(client for cohort in history.cohorts for client in cohort)
    for arrived in history.arrived:
        for client in arrived:
            selections.pop(client, None)
    clients = sorted(client for client, rounds in selections.items() if rounds >= MIN_SELECTIONS)
    if not clients:
        return []
    names = f"{', '.join(map(str, clients[:MAX_NAMED_CLIENTS]))}{', ...' if len(clients) > MAX_NAMED_CLIENTS else ''}"
    why = f"they were late (deadline={info.choices.get('deadline', '?')})"
    why += ", or their updates were dropped" if _drops_updates(history) else ""
    return [
        f"{len(clients)} of {len(info.n_train)} clients were selected {MIN_SELECTIONS} times or more and never arrived "
        f"({names}): {why}; the model has learned nothing from their data"
    ]


def _diverged(history: History) -> list[str]:
    """Report a last loss that is not finite; an accuracy is always finite."""
    lost = {name: value for name in LOSSES if not math.isfinite(value := history.final.get(name, 0.0))}
    if not lost:
        return []
    name = next(iter(lost))
    column = history.metrics[name]
    finite = column.index[np.isfinite(column.to_numpy())]
    since = f"last finite at round {finite[-1]}" if len(finite) else "never finite"
    return [f"the model has diverged: {name} is {lost[name]} at round {history.measured[name][-1]}, {since}"]


def _loss_rose(history: History) -> list[str]:
    """Report a finite loss that is many times the untrained model's."""
    for name in LOSSES:
        if name in history.final and (steps := history.measured[name])[0] == 0:
            first, last = float(history.metrics[name][0]), history.final[name]
            if last > RISE_FACTOR * first > 0:
                fact = f"{name} is {last:.3g} at round {steps[-1]}, {last / first:.0f} times the untrained model's"
                remedy = "inputs of one scale (dataset=folder has dataset.standardise=train)"
                return [f"{fact}: a smaller client.lr may help, or {remedy}"]
    return []


def _no_update(info: RunInfo, history: History) -> list[str]:
    """Report a run in which no update changed the model, with the reasons."""
    rounds = [step for step in history.steps if step]
    if not rounds:
        return []
    if list_rounds_with_update(history):
        weights = {fingerprint.rpartition(":")[2] for fingerprint in history.fingerprints}
        still = len(weights) == 1 and len(history.steps) > len(rounds)  # step 0 is among them
        return ["the model is still the initial model: no update changed it"] if still else []
    options = {group: f"{group}={info.choices.get(group, '?')}" for group in ("availability", "selector", "deadline")}
    no_arrival = f"no selected client finished in time ({options['deadline']})"
    dropped = _drops_updates(history)
    reasons = {
        "clients' updates were dropped because they were not finite or longer than update_limit": dropped,
        "the server's steps were dropped because they were not finite or longer than update_limit (a smaller server.lr "
        "may help)": any(map(len, history.arrived)),
    }
    if not any(map(len, history.cohorts)):
        reason = f"no client was selected ({options['availability']}, {options['selector']})"
    else:
        reason = ", and ".join(name for name, holds in reasons.items() if holds) or no_arrival
    return [f"no update was applied in any of the {len(rounds)} rounds, the model is the untrained one: {reason}"]


def _drops_updates(history: History) -> bool:
    """Return whether the update of some client was dropped in some round."""
    dropped = history.metrics.get("round/dropped_nonfinite")
    return dropped is not None and bool(dropped.sum() > 0)


def list_rounds_with_update(history: History) -> list[int]:
    """Return the rounds in which at least one update arrived and the server's step was applied."""
    dropped = history.metrics.get("round/dropped_step")
    without_step = set() if dropped is None else set(dropped.index[dropped > 0])
    arrivals = zip(history.steps, history.arrived, strict=True)
    return [step for step, arrived in arrivals if step and len(arrived) and step not in without_step]
