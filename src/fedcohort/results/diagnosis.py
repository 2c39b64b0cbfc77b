"""What the log of a run shows about its federation: label noise, class skew, sizes, speeds and availability.

All numbers follow from the journal and the per-client table, hence from the reports of clients to the server. Simulated
rates of wrong labels are shown for comparison, and not used.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from fedcohort.diagnosis.class_balance import count_cohort_classes, effective_classes
from fedcohort.diagnosis.excess_loss import ClassLosses
from fedcohort.diagnosis.label_noise import NoiseEstimate, NoiseMonitor, estimate_noise
from fedcohort.diagnosis.speeds import JobDurations, SpeedEstimate, choose_fast_clients, estimate_speeds
from fedcohort.record import history, metadata
from fedcohort.record.history import History
from fedcohort.record.observer import RunInfo
from fedcohort.types import Ids, Values

if TYPE_CHECKING:
    import pandas as pd

MIN_NOISE_RATE_GAP, MIN_NOISE_PERSISTENCE = 0.2, 0.8  # as in configs/selector/auto.yaml, as are the thresholds below
EVEN_CLASS_SHARE = 0.8  # random cohorts with fewer effective classes than this share of the pool's are uneven
MIN_PERSISTENT_SPEED, MIN_SPEED_GAIN, MIN_CLASS_COVER = 0.2, 1.25, 0.5


@dataclass(frozen=True)
class ProbeResult:
    """The answers to one query of the signal `class_loss`.

    Attributes:
        round: number of completed rounds, as in the journal.
        clients: sorted ids of the clients that answered, [n].
        losses: losses and numbers of samples by class that these clients reported.
        noise: estimate of the clients' label noise.
    """

    round: int
    clients: Ids
    losses: ClassLosses
    noise: NoiseEstimate


@dataclass(frozen=True)
class ClassSkew:
    """Classes and sizes of the clients. `diagnosis.class_balance` defines the effective number of classes.

    Attributes:
        counts: reported samples by client and class, [K, C].
        n_client_classes: effective number of classes of each client with samples, [n].
        n_cohort_classes: mean effective number of classes of random cohorts as large as the run's.
        n_all_classes: effective number of classes of all clients together.
    """

    counts: Float64[np.ndarray, "_k _c"]
    n_client_classes: Values
    n_cohort_classes: float
    n_all_classes: float

    @property
    def is_uneven(self) -> bool:
        """Whether random cohorts have effectively less than `EVEN_CLASS_SHARE` of the federation's classes."""
        return self.n_cohort_classes < EVEN_CLASS_SHARE * self.n_all_classes

    @property
    def size_variation(self) -> float:
        """Coefficient of variation of the clients' numbers of samples."""
        client_sizes = self.counts.sum(1)
        return float(client_sizes.std() / max(client_sizes.mean(), 1e-300))

    @property
    def share_of_largest_tenth(self) -> float:
        """Share of all samples that the largest tenth of the clients holds."""
        client_sizes = np.sort(self.counts.sum(1))[::-1]
        return float(client_sizes[: max(len(client_sizes) // 10, 1)].sum() / max(client_sizes.sum(), 1e-300))


@dataclass(frozen=True)
class RunDiagnosis:
    """The findings about a run's federation; None for facts that its log does not hold.

    Attributes:
        info: metadata of the run.
        rounds: number of completed rounds.
        probe_results: queries of the signal `class_loss`, in their order.
        skew: classes and sizes of the clients.
        speeds: persistence of the clients' speeds.
        speed_gain: predicted factor by which rounds become shorter without the slowest clients; 1 for no clients to
            leave out.
        availability: share of rounds in which each client was available, [K].
        probe_bytes: bytes of all queries of the run.
        n_forward_passes: number of forward passes over all of a client's samples that queries of `class_loss` required.
    """

    info: RunInfo
    rounds: int
    probe_results: Sequence[ProbeResult]
    skew: ClassSkew | None
    speeds: SpeedEstimate | None
    speed_gain: float
    availability: Values | None
    probe_bytes: float
    n_forward_passes: int

    @property
    def valid_probes(self) -> Sequence[ProbeResult]:
        """The queries at which the global model distinguished right labels from wrong ones well enough."""
        return [probe_result for probe_result in self.probe_results if probe_result.noise.is_valid]

    @property
    def noise_case(self) -> str:
        """What the queries show about label noise, one of the keys from which the page's template makes a sentence."""
        noise_monitor = NoiseMonitor()
        for probe_result in self.valid_probes:
            noise_monitor = noise_monitor.with_probe(probe_result.noise.gap, MIN_NOISE_RATE_GAP, MIN_NOISE_PERSISTENCE)
        if not noise_monitor.n_looks:
            return "too_early" if self.probe_results else "not_measured"
        if noise_monitor.is_acting:
            return "persists"
        if max(probe_result.noise.gap for probe_result in self.valid_probes) < MIN_NOISE_RATE_GAP:
            return "none"
        return "one_look" if noise_monitor.n_looks == 1 else "falling"

    @property
    def rate_of_noisier_clients(self) -> float:
        """Mean excess rate of wrong labels of the noisier clients at the last valid query; NaN without any."""
        noise = self.valid_probes[-1].noise if self.valid_probes else None
        return float(noise.fit.noise_rate[noise.is_noisier].mean()) if noise and noise.is_noisier.any() else math.nan

    @property
    def advice(self) -> str:
        """The rule of `selector=auto` that applies: noise, classes, speed or random; unknown if noise is undecided."""
        if self.noise_case in ("not_measured", "too_early", "one_look"):
            return "unknown"
        if self.noise_case == "persists":
            return "noise"
        if self.skew is not None and self.skew.is_uneven:
            return "classes"
        return "speed" if self.speed_gain > 1 else "random"


def diagnose_run(run_folder: Path) -> RunDiagnosis:
    """Return what the log of the run in `run_folder` shows. Raises `CheckpointError` if the folder holds no run."""
    run_history, run_info = history.read_history(run_folder), metadata.load_info(run_folder)
    client_table = run_history.clients()
    probe_results = [_read_probe(rows, round) for round, rows in _list_probe_rows(client_table, "class_loss")]
    counts = _read_class_counts(client_table, probe_results, len(run_info.n_train))
    cohort_size = int(run_info.config["cohort"])
    class_skew = None if counts is None else _measure_skew(counts, cohort_size)
    durations = _read_durations(client_table, len(run_info.n_train))
    samples = run_info.n_train.astype(np.float64) if counts is None else counts.sum(1)
    speeds, speed_gain = None, 1.0
    if durations.job_counts.any():
        speeds = estimate_speeds(durations, samples)
        if counts is not None and speeds.low > MIN_PERSISTENT_SPEED:
            _, speed_gain = choose_fast_clients(
                speeds, counts, samples > 0, cohort_size, MIN_CLASS_COVER, MIN_SPEED_GAIN
            )
    return RunDiagnosis(
        info=run_info,
        rounds=run_history.steps[-1] if run_history.steps else 0,
        probe_results=probe_results,
        skew=class_skew,
        speeds=speeds,
        speed_gain=speed_gain,
        availability=_read_availability(run_history, client_table, len(run_info.n_train)),
        probe_bytes=run_history.last_metrics.get("comm/probe_bytes", 0.0),
        n_forward_passes=sum(len(probe_result.clients) for probe_result in probe_results),
    )


def _list_probe_rows(table: "pd.DataFrame", signal_name: str) -> "Sequence[tuple[int, pd.DataFrame]]":
    """Return each round that queried `signal_name`, with the rows of `table` of the clients that answered."""
    prefix = f"signal_{signal_name}."
    columns = sorted((c for c in table.columns if c.startswith(prefix)), key=lambda c: int(c.removeprefix(prefix)))
    if not columns:
        return []
    answered_rows = table.loc[table[columns].notna().all(axis=1), ["step", "client", *columns]]
    return [(int(str(round)), rows) for round, rows in answered_rows.groupby("step")]


def _read_probe(rows: "pd.DataFrame", round: int) -> ProbeResult:
    losses = ClassLosses.from_rows(rows.iloc[:, 2:].to_numpy(np.float64))
    return ProbeResult(round, rows["client"].to_numpy(np.int64), losses, estimate_noise(losses))


def _read_class_counts(
    client_table: "pd.DataFrame", probe_results: Sequence[ProbeResult], n_clients: int
) -> Float64[np.ndarray, "_k _c"] | None:
    """Return the sample counts clients reported in `client_table` and `probe_results`, by client and class, [K, C].

    A client that reported nothing has zeros. The result is None if none of the `n_clients` clients reported.
    """
    class_reports = [(probe_result.clients, probe_result.losses.class_counts) for probe_result in probe_results]
    class_reports += [
        (rows["client"].to_numpy(np.int64), rows.iloc[:, 2:].to_numpy(np.float64))
        for _, rows in _list_probe_rows(client_table, "label_counts")
    ]
    if not class_reports:
        return None
    class_counts = np.zeros((n_clients, class_reports[0][1].shape[1]))
    for clients, reported_counts in class_reports:
        class_counts[clients] = reported_counts
    return class_counts


def _measure_skew(counts: Float64[np.ndarray, "_k _c"], cohort_size: int) -> ClassSkew:
    has_samples = counts.sum(1) > 0
    n_cohort_classes, all_classes = count_cohort_classes(counts, has_samples, cohort_size, np.random.default_rng(0))
    return ClassSkew(counts, effective_classes(counts[has_samples]), n_cohort_classes, all_classes)


def _read_durations(client_table: "pd.DataFrame", n_clients: int) -> JobDurations:
    """Return the durations in seconds of arrived jobs in `client_table`, of `n_clients` clients.

    A run without virtual time has none.
    """
    durations = JobDurations(np.zeros(n_clients, np.int64), np.zeros(n_clients), np.zeros(n_clients))
    if "finish_s" not in client_table:
        return durations
    for _, rows in client_table[client_table["arrived"] & client_table["finish_s"].notna()].groupby("step"):
        durations = durations.with_jobs(rows["client"].to_numpy(np.int64), rows["finish_s"].to_numpy(np.float64))
    return durations


def _read_availability(run_history: History, client_table: "pd.DataFrame", n_clients: int) -> Values | None:
    """Return the share of rounds in which each of `n_clients` clients was available, [n_clients].

    It is read from the journal `run_history`, or else from `client_table`. None before the first round.
    """
    rounds = [round for round in run_history.steps if round]
    if not rounds:
        return None
    n_available_rounds = np.zeros(n_clients)
    for round in rounds:
        is_available = run_history.available(round)
        if is_available is None:
            rows = client_table[(client_table["step"] == round) & client_table["available"]]
            is_available = np.isin(np.arange(n_clients), rows["client"])
        n_available_rounds += is_available
    return np.asarray(n_available_rounds / len(rounds), np.float64)
