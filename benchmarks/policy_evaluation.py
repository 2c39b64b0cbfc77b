"""How often the intervals of `fedcohort evaluate-policy` cover, against steps that are taken with other cohorts.

    python benchmarks/policy_evaluation.py [seeds]      writes policy_evaluation.csv and .md

Each run selector trains with each seed for 20 rounds, with cohorts of 2 of 20 clients. Then the run is trained again.
In its state before each round all clients train, and the server's step is evaluated with each of the 190 cohorts. A
client's update does not depend on the others of its cohort. For three cohorts of each round the engine takes the step
from the checkpoint, as a check. The truth of another selector is the mean of these gains by its probabilities. A
replicate draws a cohort of each round by the run's selector, in the states of the run, and evaluates the other selector
from these cohorts and their gains. The first replicate has the cohorts of the run.
"""

import datetime
import math
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import torch

from fedcohort.api.run import run_with_overrides
from fedcohort.command.evaluate_policy import find_exclusion_reason, replay_cohorts
from fedcohort.host.processor import name_processor
from fedcohort.host.stopwatch import Stopwatch
from fedcohort.maths.successive_draws import CohortDistribution
from fedcohort.record import history
from fedcohort.record.run_log import read_run_log
from fedcohort.results import policy_evaluation
from fedcohort.results.policy_evaluation import ComparedRound, RunHistory, estimate_gain
from fedcohort.round.round import RoundRunner
from fedcohort.round.settings import Settings
from fedcohort.round.setup import RunSetup
from fedcohort.selector.base import Selector
from fedcohort.startup import build, check, compose, load
from fedcohort.types import Ids

SCRIPT = Path(__file__).resolve()
CONFIGS = SCRIPT.parents[1] / "configs"
N_SEEDS, N_ROUNDS, N_CLIENTS, COHORT, N_REPLICATES = 5, 20, 20, 2, 200
METRIC, N_CHECKED, TOLERANCE = "test/loss", 3, 1e-6
RUN = (
    *("dataset=digits", "heterogeneity=own", "partition=dirichlet", "partition.alpha=0.3", "model=logreg"),
    *(f"clients={N_CLIENTS}", f"cohort={COHORT}", f"rounds={N_ROUNDS}", "eval.every=1", "eval.clients_every=0"),
    *("logger=none", "callback.figures=null", "callback.summary=null", "callback.progress=null"),
)
ACTIVE_FL = ("selector=active_fl", "selector.alpha3=0", "selector.tie=id")
RUN_SELECTORS: Mapping[str, Sequence[str]] = {
    "random": ("selector=random",),
    "proportional": ("selector=random", "selector.weights=proportional"),
    "active_fl, a2=.03": (*ACTIVE_FL, "selector.alpha1=0", "selector.alpha2=0.03"),
    "feel, rho=.3": ("selector=feel", "selector.importance=update_lag", "selector.rho=0.3"),
    "active_fl, a2=.1": (*ACTIVE_FL, "selector.alpha1=0", "selector.alpha2=0.1"),
}
OTHER_SELECTORS: Mapping[str, Sequence[str]] = {
    "random": RUN_SELECTORS["random"],
    "proportional": RUN_SELECTORS["proportional"],
    "active_fl, a2=.03": RUN_SELECTORS["active_fl, a2=.03"],
    "active_fl, a2=.1": RUN_SELECTORS["active_fl, a2=.1"],
    "active_fl, a1=.25, a2=.03": (*ACTIVE_FL, "selector.alpha1=0.25", "selector.alpha2=0.03"),
    "round_robin": ("selector=round_robin",),
    "active_fl, a2=.3": (*ACTIVE_FL, "selector.alpha1=0", "selector.alpha2=0.3"),
}
OTHERS_PER_RUN = 6
COHORTS = np.array(list(combinations(range(N_CLIENTS), COHORT)))


class ForcedSelector:
    """A selector whose choice is replaced by `cohort`, unless that is None."""

    def __init__(self, selector: Selector[Any]) -> None:
        self.selector: Selector[Any] = selector
        self.cohort: Ids | None = None

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self.selector, name)

    def select(self, *arguments: Any) -> Any:  # noqa: ANN401
        """Return the selector's choice with the forced cohort, and its state."""
        selection, state = self.selector.select(*arguments)
        if self.cohort is None:
            return selection, state
        return replace(selection, clients=self.cohort, uncapped=True), state


class SteppedRun:
    """A run that is trained again step by step, outside of Lightning, and can go back to a state."""

    def __init__(self, overrides: Sequence[str]) -> None:
        composition = compose.compose_run(overrides, CONFIGS)
        objects = check.make_light_components(composition)
        components = check.make_components(composition, objects)
        self.selector = ForcedSelector(components.selector)
        facts = load.load_run_facts(composition, objects, replace(components, selector=cast(Any, self.selector)))
        self.network = build.build_network(composition, objects["model"], facts.federation)
        settings, self.federation = Settings.from_config(composition.config, "benchmark"), facts.federation
        self.setup = RunSetup(facts.components, settings, self.federation, self.network, Stopwatch(), None)
        self.runner = RoundRunner(self.setup, Stopwatch())

    def save(self) -> tuple[torch.Tensor, Any, Any]:
        """Return the run's checkpoint: weights, state of the server, stored vectors of clients."""
        return self.setup.server.w.clone(), self.runner.state.to_plain_data(), self.setup.store.state_dict()

    def restore(self, snapshot: tuple[torch.Tensor, Any, Any]) -> None:
        """Go back to a checkpoint."""
        with torch.no_grad():
            self.setup.server.w.copy_(snapshot[0])
        self.runner.state = type(self.runner.state).from_plain_data(snapshot[1], self.setup.initial_server_state())
        self.setup.store.load_state_dict(snapshot[2])

    def train(self, t: int, cohort: Ids | None = None) -> tuple[Any, list[Any]]:
        """Train the clients of round t, those of the selector or others; return the collector and the updates."""
        self.selector.cohort = cohort
        groups, collector = self.runner.begin_round(t)
        updates = []
        for tasks in groups:
            with self.runner.sent_models(t).load_model(t) as vectors:
                for update in self.setup.engine.train_clients(list(tasks), vectors):
                    collector.add_client_update(update)
                    updates.append(update)
        return collector, updates

    def step(self, t: int, cohort: Ids | None = None) -> float:
        """Take the step of round t with the selector's cohort, or another one, and return the test loss after it."""
        self.runner.end_round(self.train(t, cohort)[0])
        return self.loss()

    def loss_of_each(self, t: int) -> np.ndarray:
        """Return the test loss after the step of round t with each cohort: w_t plus the mean update by samples."""
        updates = {update.client: update for update in self.train(t, np.arange(N_CLIENTS))[1]}
        w, losses = self.setup.server.w.clone(), []
        for cohort in COHORTS:
            weights = torch.tensor([float(updates[k].n_used) for k in cohort], dtype=torch.float64)
            deltas = torch.stack([updates[k].delta for k in cohort]).double()
            with torch.no_grad():
                self.setup.server.w.copy_(w + (weights @ deltas / weights.sum()).to(w.dtype))
            losses.append(self.loss())
        return np.array(losses)

    def loss(self) -> float:
        """Return the test loss of the global model, in nats."""
        test = self.federation.server_test
        with torch.no_grad():
            return float(self.federation.targets.losses(self.network(test.x), test.y).double().mean())


def measure_gains(folder: Path, overrides: Sequence[str]) -> np.ndarray:
    """Return the gain of each cohort in each round of a run, [rounds, cohorts].

    Raises `ValueError` where the engine's step or the logged loss differs by more than `TOLERANCE`.
    """
    run, logged_losses = SteppedRun(overrides), history.read_history(folder).metrics[METRIC].to_numpy()
    gains, rng = np.empty((N_ROUNDS, len(COHORTS))), np.random.default_rng(0)
    for t in range(N_ROUNDS):
        snapshot, before = run.save(), run.loss()
        losses = run.loss_of_each(t)
        run.restore(snapshot)
        for i in rng.choice(len(COHORTS), N_CHECKED, replace=False):
            if abs(run.step(t, COHORTS[i]) - losses[i]) > TOLERANCE:
                raise ValueError(f"{folder}: the step of round {t + 1} with {COHORTS[i]} differs from the mean update")
            run.restore(snapshot)
        if not np.allclose([before, run.step(t)], logged_losses[t : t + 2], rtol=0, atol=TOLERANCE):
            raise ValueError(f"{folder}: round {t + 1} was not repeated")
        gains[t] = before - losses
    return gains


@dataclass(frozen=True)
class Table:
    """What a replicate needs of one round: values of each cohort, [cohorts], and its summaries, [cohorts, d]."""

    run: int
    probability: np.ndarray
    other_probability: np.ndarray
    gain: np.ndarray
    summary: np.ndarray
    chosen: int

    @property
    def truth(self) -> float:
        return float(self.other_probability @ self.gain)

    def draw(self, rng: np.random.Generator | None) -> ComparedRound:
        """Return the round with a cohort drawn by the run's selector; None for that of the run."""
        i = self.chosen if rng is None else int(rng.choice(len(COHORTS), p=self.probability / self.probability.sum()))
        with np.errstate(divide="ignore"):
            log_ratio = float(np.log(self.other_probability[i] / self.probability[i]))
        uncovered = float(self.other_probability[self.probability == 0].sum())
        means = (self.probability @ self.summary, self.other_probability @ self.summary)
        return ComparedRound(self.run, float(self.gain[i]), log_ratio, uncovered, self.summary[i], *means)


def tabulate(run: int, folder: Path, gains: np.ndarray, other_overrides: Sequence[str]) -> Iterator[Table]:
    """Yield the tables of the rounds that count."""
    log = read_run_log(folder)
    run_history = RunHistory(run, log, history.read_history(folder).metrics[METRIC].to_numpy(), -1)
    for round, cohort_distributions in replay_cohorts(log, other_overrides, CONFIGS):
        if not find_exclusion_reason(round, cohort_distributions, run_history):
            chosen = int(np.flatnonzero((round.cohort == COHORTS).all(axis=1))[0])
            summary = run_history.summarise_cohorts(log, round.t, COHORTS)
            yield Table(
                run,
                probabilities(cohort_distributions[0]),
                probabilities(cohort_distributions[1]),
                gains[round.t],
                summary,
                chosen,
            )
        run_history.add_round(round)


def probabilities(distribution: CohortDistribution) -> np.ndarray:
    """Return the probability of each cohort; they must add up to one."""
    p = np.exp([distribution.log_probability(cohort) for cohort in COHORTS])
    if abs(p.sum() - 1) > 1e-6:
        raise ValueError(f"the probabilities of all cohorts add up to {p.sum()}")
    return np.asarray(p)


def replicate(tables: Sequence[Table], n: int) -> pd.DataFrame:
    """Return one row for each replicate and estimator; those of refused replicates have no estimate."""
    truth = float(np.mean([table.truth for table in tables]))
    own_gain = float(np.mean([table.probability @ table.gain for table in tables]))
    rows, rng = [], np.random.default_rng(0)
    for number in range(n):
        result = estimate_gain([table.draw(rng if number else None) for table in tables], {})
        common = {"replicate": number, "rounds": len(tables), "truth": truth, "own": own_gain}
        common |= {"size": result.effective_size, "refused": bool(result.reason)}
        common |= dict.fromkeys(("estimate", "low", "high"), np.nan)
        for estimator in policy_evaluation.ESTIMATORS:
            mean = result.estimates.get(estimator)
            target = truth - own_gain if estimator == policy_evaluation.DOUBLY_ROBUST_DIFFERENCE else truth
            row = {**common, "estimator": estimator, "target": target}
            rows.append(row if mean is None else {**row, "estimate": mean.mean, "low": mean.low, "high": mean.high})
    return pd.DataFrame(rows)


def main(n_seeds: int) -> None:
    """Train, take the steps, evaluate all pairs, and write both files."""
    torch.set_num_threads(1)
    frames = []
    with tempfile.TemporaryDirectory() as logs:
        for run_name, words in RUN_SELECTORS.items():
            overrides = [[*RUN, *words, f"seed={seed}", f"paths.logs={logs}"] for seed in range(n_seeds)]
            folders = [run_with_overrides(o).folder for o in overrides]
            gains = [measure_gains(folder, o) for folder, o in zip(folders, overrides, strict=True)]
            other_names = [name for name in OTHER_SELECTORS if name != run_name][:OTHERS_PER_RUN]
            for other_name in other_names:
                runs = enumerate(zip(folders, gains, strict=True))
                tables = [t for run, (f, g) in runs for t in tabulate(run, f, g, OTHER_SELECTORS[other_name])]
                frames.append(replicate(tables, N_REPLICATES).assign(run=run_name, other=other_name))
                print(
                    frames[-1].groupby("estimator")[["size", "target", "estimate"]].mean(),
                    run_name,
                    other_name,
                    flush=True,
                )
    rows = pd.concat(frames, ignore_index=True)
    table = summarise(rows)
    table.to_csv(SCRIPT.with_suffix(".csv"), index=False, float_format="%.5g")
    SCRIPT.with_suffix(".md").write_text(write_page(table, n_seeds))


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each pair and estimator."""
    lines: list[dict[str, Any]] = []
    for (run, other_name, estimator), group in rows.groupby(["run", "other", "estimator"], sort=False):
        used, target = group[~group["refused"]], float(group["target"].iloc[0])
        errors, covers = used["estimate"] - target, (used["low"] <= target) & (target <= used["high"])
        line: dict[str, Any] = {"run": run, "other": other_name, "estimator": estimator}
        line |= {"rounds": int(group["rounds"].iloc[0]), "size": group["size"].mean()}
        line |= {"refused": group["refused"].mean(), "own": group["own"].iloc[0], "target": target}
        line |= {"bias": errors.mean(), "rmse": np.sqrt((errors**2).mean()), "coverage": covers.mean()}
        logged_cover = covers[used["replicate"] == 0]
        lines.append({**line, "covers_logged": float(logged_cover.iloc[0]) if len(logged_cover) else np.nan})
    return pd.DataFrame(lines)


def write_page(table: pd.DataFrame, n_seeds: int) -> str:
    """Return the page: one line per estimator, then one line per pair."""
    first = table[table["estimator"] == policy_evaluation.ESTIMATORS[0]]
    lines = [
        "# Coverage of the intervals of fedcohort evaluate-policy",
        "",
        f"`make bench-policy`, {datetime.date.today().isoformat()}, {name_processor()}. "
        f"{len(first)} pairs of selectors, each with {n_seeds} runs of {N_ROUNDS} rounds: digits, logistic regression, "
        f"Dirichlet 0.3, cohorts of {COHORT} of {N_CLIENTS} clients. {N_REPLICATES} replicates for each pair. The "
        "metric is the test loss, in nats per step. Estimates are refused below an effective sample size of "
        f"{policy_evaluation.MIN_EFFECTIVE_SIZE:g} rounds. Bias, error and coverage are those of the other replicates.",
        "",
        "The relative error is the root mean square error over the absolute truth. The coverage is of 95 % intervals, "
        "over all replicates of the pairs. The column *logged* counts pairs whose interval from the runs' own cohorts "
        "covers.",
        "",
        "| estimator | pairs | mean bias | mean error | relative error, median | coverage | lowest | logged |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for estimator, group in table[table["refused"] < 1].groupby("estimator", sort=False):
        relative, weights = (group["rmse"] / group["target"].abs()).median(), 1 - group["refused"]
        coverage, logged = np.average(group["coverage"], weights=weights), group["covers_logged"]
        lines.append(
            f"| {estimator} | {len(group)} | {group['bias'].mean():.4f} | {group['rmse'].mean():.4f} | "
            f"{relative:.0%} | {coverage:.1%} | {group['coverage'].min():.1%} | "
            f"{int(logged.sum())} of {logged.count()} |"
        )
    lines += [
        "",
        "| run | other | size | refused | run's gain | truth | " + " | ".join(policy_evaluation.ESTIMATORS) + " |",
        "|---|---|---:|---:|---:|---:|" + 4 * "---:|",
    ]
    for (run, other_name), group in table.groupby(["run", "other"], sort=False):
        numbers = group[["bias", "coverage"]].to_numpy(float)
        cells = ["" if math.isnan(coverage) else f"{bias:+.4f}, {coverage:.0%}" for bias, coverage in numbers.tolist()]
        row = group.iloc[0]
        lines.append(
            f"| {run} | {other_name} | {row['size']:.1f} of {row['rounds']} | {row['refused']:.0%} | "
            f"{row['own']:.4f} | {row['target']:.4f} | {' | '.join(cells)} |"
        )
    return "\n".join([*lines, "", "A cell has the bias and the coverage."]) + "\n"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else N_SEEDS)
