"""The last step of a round (docs/architecture.md): its metrics and columns."""

import hashlib
from collections.abc import Mapping

import numpy as np

from fedcohort.data.federation import Federation
from fedcohort.data.skew import class_imbalance
from fedcohort.deadline.base import DeadlineOutcome
from fedcohort.flat import FlatModel
from fedcohort.round.client_facts import ClientFacts
from fedcohort.round.collected import Collected
from fedcohort.round.finish import Finished
from fedcohort.round.parts import Parts, Populations, ServerState
from fedcohort.signal.base import Static, find
from fedcohort.types import Ids

ROW = 64  # numbers of a row that the per-client table takes


def weights_hash(server: FlatModel) -> str:
    """Return a hash of the global model in canonical parameter order."""
    digest = hashlib.blake2b(digest_size=6)
    layout = server.layout
    parts = ((server.w, layout.parameters), (server.buffers, layout.buffers), (server.counters, layout.counters))
    for vector, blocks in parts:
        for block in blocks:
            digest.update(block.of(vector.detach()).cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def columns(finished: Finished, collected: Collected, n_clients: int) -> ClientFacts:
    """Return the per-client columns of a round. n_clients: K."""
    selection, came = finished.selection, collected.clients
    done = finished.closing.units > 0
    flags = {
        "available": finished.dispatched.ready,
        "queried": finished.queried,
        "selected": selection.clients,
        "arrived": came,
    }
    table: dict[str, tuple[Ids | None, np.ndarray]] = {
        "units": (selection.clients, finished.closing.units),
        "finish_s": (selection.clients, np.where(done, finished.closing.finish, np.nan)),
        **{name: (selection.clients, values) for name, values in phases(finished.closing).items()},
        "train_loss": (came, collected.reports["train_loss"]),
        "weight": (came, collected.weights),
    }
    ranking = {"score": selection.scores, **{f"part_{name}": part for name, part in selection.parts.items()}}
    ranking |= {"reward": selection.reward, "probability": selection.probability}
    table |= {name: (None, values) for name, values in ranking.items() if values is not None}
    reports = {word: (came, values) for word, values in collected.reports.items() if word != "train_loss"}
    reports |= {word: (came, found) for word, found in collected.derived.items() if isinstance(found, np.ndarray)}
    reports |= {word: (answer.clients, answer.values) for word, answer in finished.dispatched.queried.answers.items()}
    for word, (ids, values) in reports.items():
        table |= {name: (ids, column) for name, column in spread_columns(word, values).items()}
    return ClientFacts(n_clients, flags, table)


def phases(closing: DeadlineOutcome) -> Mapping[str, np.ndarray]:
    """Return the phases of each selected client's job, in seconds; for a late client, those of the whole job."""
    return {"units_asked": closing.asked, **{f"{name}_s": seconds for name, seconds in closing.phases.items()}}


def pace(finished: Finished) -> Mapping[str, float]:
    """Return the announced deadline, if there is one, and when the round closed; {} without a cohort."""
    closing = finished.closing
    if not len(finished.selection.clients):
        return {}
    told = {"round/announced_s": float(closing.announced)} if np.isfinite(closing.announced) else {}
    return {**told, "round/closed_s": float(closing.train_s)}


def spread_columns(word: str, values: np.ndarray) -> Mapping[str, np.ndarray]:
    """Spread a signal over columns: `signal_<word>`, or `signal_<word>.0`, `.1`, ... where it is rows, [n, d].

    {} where rows are longer than `ROW`: compressed gradients can be as long as the model. Rows of pairs are as wide as
    the round, and what a wider round adds is null in this one.
    """
    if values.ndim == 1:
        return {f"signal_{word}": values}
    return {f"signal_{word}.{i}": column for i, column in enumerate(values.T)} if values.shape[1] <= ROW else {}


def registered_columns(parts: Parts, populations: Populations) -> ClientFacts:
    """Return the signals that clients sent when they registered, as columns."""
    found: dict[str, np.ndarray] = {}
    for word in sorted(parts.selector.needs):
        if isinstance(signal := find(word), Static):
            found |= spread_columns(word, populations.facts[signal.fact].astype(np.float64))
    return ClientFacts.from_columns(found)


def facts_of(federation: Federation, collected: Collected | None, liars: np.ndarray) -> Mapping[str, float]:
    """Return the scalars that describe data and arrivals.

    They are of the federation before the first round, and of those who arrived after one. liars: bool [n_clients].
    """
    if collected is None:
        return {f"skew/{name}": value for name, value in federation.skew.items()}
    lies = weight_of(liars, collected) if liars.any() else {}
    imbalance = imbalance_of(federation.label_counts, collected) if federation.targets.single else {}
    return {**imbalance, **lies}


def weight_of(liars: np.ndarray, collected: Collected) -> Mapping[str, float]:
    """Return the weight of liars (bool [n_clients]) in the aggregate and their share of arrivals; {} in empty rounds.

    Of the sum of all weights: some aggregators' don't sum to 1 (q-FFL's).
    """
    total = float(collected.weights.sum())
    if total <= 0:
        return {}
    lying = liars[collected.clients]
    return {"attack/weight": float(collected.weights[lying].sum()) / total, "attack/share": float(lying.mean())}


def imbalance_of(label_counts: np.ndarray, collected: Collected) -> Mapping[str, float]:
    """Return the class imbalance of the pooled data of the clients that arrived; {} in empty rounds."""
    if not len(collected.clients):
        return {}
    return {"select/class_imbalance": class_imbalance(label_counts[collected.clients].sum(0))}


def progress(
    step: int, finished: Finished | None, collected: Collected | None, state: ServerState
) -> Mapping[str, float]:
    """Return the scalars of what the run has spent, and of whom the round selected, by metric name."""
    scalars = state.spent.metrics()
    if finished is None or collected is None:
        return scalars
    return scalars | {
        "round/cohort": float(len(finished.selection.clients)),
        "round/arrived": float(len(collected.clients)),
        "round/waited_s": finished.dispatched.waited_s,
        "round/dropped_nonfinite": float(len(collected.dropped)),
        "round/dropped_step": float(collected.step_dropped),
        "select/share_max": float(state.times_selected.max() / step),
        "select/share_min": float(state.times_selected.min() / step),
        **pace(finished),
        **state.uniform.metrics(state.times_selected),
    }
