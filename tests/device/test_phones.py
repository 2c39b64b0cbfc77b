"""Seconds of phones by hand; and FedBalancer's mean job on UCI-HAR, from its own logs."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from fedcohort.deadline.base import compute_outcome
from fedcohort.device.base import Timing, Workload
from fedcohort.device.phones import BATCH_TIMES, LINK_SPEEDS, Phones
from fedcohort.errors import OptionError
from fedcohort.rng import Draws
from fedcohort.types import Ids, Values

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "uci_har"
LOGS = SHARED.parents[1] / "papers" / "tables" / "fedbalancer_har_rounds.csv.gz"
PARTS = ("down_s", "infer_s", "unit_s", "up_s")
COUNTS = (18820.0, 16428.0, 159.0)
NEXUS, REDMI, PIXEL = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
E = 5


def job(n: "Values | Ids", size: float = 0.0) -> Workload:
    """E epochs over n samples, without forward passes; size: bytes of the model, either way."""
    none = np.zeros(len(n))
    return Workload(n / E, none, E, none + size, none + size, epochs=E)


def phones(proportions: tuple[float, ...] = COUNTS, workload: str = "femnist", scale: float = 1.0) -> Phones:
    return Phones(workload, scale, proportions)


@pytest.mark.parametrize(("kind", "seconds"), [(PIXEL, 8.95), (REDMI, 29.4), (NEXUS, 82.1)])
def test_the_time_of_five_epochs_of_ten_batches_by_hand(kind: tuple[float, ...], seconds: float) -> None:
    """100 samples in tens are 10 batches of .179, .588 or 1.642 s. 95 samples, 9.5 batches, take a twentieth less."""
    timing = phones(kind).expect(np.arange(2), job(np.array([100, 95])), Draws(0, 2))
    assert timing.finish_s(E) == pytest.approx([seconds, 0.95 * seconds], rel=1e-6)


@pytest.mark.parametrize(("workload", "seconds"), [("shakespeare", 286.21), ("celeba", 539.2), ("reddit", 259.6)])
def test_batch_times_depend_on_the_workload(workload: str, seconds: float) -> None:
    """1000 samples once on a Nexus: 10 batches of 100 at 28.621 s, or 100 of 10 at 5.392 or 2.596 s."""
    work = Workload(np.array([1000.0]), np.zeros(1), 1, np.zeros(1), np.zeros(1))
    assert phones(NEXUS, workload).expect(np.arange(1), work, Draws(0, 1)).unit_s[0] == pytest.approx(seconds, rel=1e-6)


def test_scale_and_har_are_multiples_of_femnist() -> None:
    clients, work = np.arange(9), job(np.arange(9) + 50)
    femnist, tiny, har = (
        phones(COUNTS, *options).sample(clients, work, Draws(0, 9, 1)).unit_s
        for options in (("femnist", 1.0), ("femnist", 1e-4), ("har", 1.0))
    )
    np.testing.assert_allclose(tiny, 1e-4 * femnist)
    np.testing.assert_allclose(har, 25305880 / 26414840 * femnist)


def test_expected_seconds_of_a_phone_by_hand() -> None:
    """A batch of CelebA on a Nexus 6 takes 5392 +- 982.5 ms, of which a truncation at 1 ms leaves the mean as it is.

    A unit of 10 samples in 3 epochs is three such batches, 16.176 s.
    """
    work = Workload(np.full(1, 10.0), np.zeros(1), 1, np.zeros(1), np.zeros(1), epochs=3)
    timing = phones(NEXUS, "celeba").expect(np.arange(1), work, Draws(0, 1))
    assert timing.unit_s[0] == pytest.approx(16.176, rel=1e-6)


class Typical(Draws):
    """The sixteenth link, and what is drawn in a round is the mean."""

    def draws_of_run(self) -> Draws:
        return self

    def uniform(self, purpose: str) -> Values:
        return np.full(self.n_clients, 15.5 / 19)

    def generator(self, purpose: str, client: int = 0) -> np.random.Generator:
        class Zero(np.random.Generator):
            def standard_normal(self, size: int) -> np.ndarray:  # type: ignore[override]
                return np.zeros(size)

        return Zero(np.random.PCG64(0))


class Fastest(Typical):
    """What is drawn in a round is far below the mean."""

    def generator(self, purpose: str, client: int = 0) -> np.random.Generator:
        class Low(np.random.Generator):
            def standard_normal(self, size: int) -> np.ndarray:  # type: ignore[override]
                return np.full(size, -100.0)

        return Low(np.random.PCG64(0))


def test_a_batch_takes_a_millisecond_at_least() -> None:
    """Ten samples are one batch of 10."""
    work = Workload(np.full(1, 10.0), np.zeros(1), 1, np.zeros(1), np.zeros(1))
    assert phones(NEXUS, "celeba").sample(np.arange(1), work, Fastest(0, 1, 0)).unit_s[0] == pytest.approx(1e-3)


def test_the_model_of_femnist_on_a_link() -> None:
    """6,603,710 parameters of 4 bytes at 4317.63 KiB a second take 5.9745 s at the mean speed.

    Over the rounds they take longer, as 1 / v is convex: E[1 / (1 + c Z)] = 1 + c^2 + 3 c^4 + 15 c^6 + ... at c = .293.
    """
    work, draws = job(np.array([10]), 6_603_710 * 4), Typical(0, 1, 0)
    seconds_at_mean = phones().sample(np.arange(1), work, draws).down_s[0]
    assert seconds_at_mean == pytest.approx(5.9745, abs=5e-5)
    c = 1264.95 / 4317.63
    mean = phones().expect(np.arange(1), work, draws).down_s[0]
    assert mean / seconds_at_mean == pytest.approx(1 + c**2 + 3 * c**4 + 15 * c**6 + 105 * c**8, rel=0.02)


def test_phones_and_links_follow_the_proportions() -> None:
    clients = np.arange(20_000)
    timing = phones().expect(clients, job(np.full(20_000, 100), 1e6), Draws(3, 20_000, 7))
    classes, counts = np.unique(np.round(timing.unit_s * E, 3), return_counts=True)
    assert classes.tolist() == [8.95, 29.4, 82.1]
    p = np.array(COUNTS[::-1]) / sum(COUNTS)
    assert (np.abs(counts / 20_000 - p) < 5 * np.sqrt(p * (1 - p) / 20_000)).all()
    links, people = np.unique(np.round(timing.down_s, 9), return_counts=True)
    assert len(links) == len(np.unique(np.round(timing.up_s, 9))) == len(LINK_SPEEDS) == 19
    assert (np.abs(people - 20_000 / 19) < 5 * np.sqrt(20_000 / 19)).all()
    slow = timing.unit_s > 16
    assert timing.down_s[slow].mean() == pytest.approx(timing.down_s.mean(), rel=0.05)  # drawn independently


def test_phones_and_links_depend_on_the_seed_and_stay_for_the_run() -> None:
    clients, work = np.arange(60), job(np.full(60, 100), 1e6)
    first, later, other_seed = (
        phones().expect(clients, work, Draws(*arguments)) for arguments in ((0, 60), (0, 60, 9), (1, 60))
    )
    assert np.array_equal(first.unit_s, later.unit_s)
    assert np.array_equal(first.down_s, later.down_s)
    assert not np.array_equal(first.unit_s, other_seed.unit_s)
    assert not np.array_equal(first.down_s, other_seed.down_s)


def test_rounds_vary_by_the_measured_amounts() -> None:
    """A Nexus takes 1642 +- 99.5 ms a batch: over 500 rounds, its mean and deviation within 5 standard errors."""
    work = Workload(np.full(1, 10.0), np.zeros(1), 1, np.zeros(1), np.zeros(1))
    batch = np.array([phones(NEXUS).sample(np.arange(1), work, Draws(0, 1, t)).unit_s[0] for t in range(500)])
    assert batch.mean() == pytest.approx(1.642, abs=5 * 0.0995 / np.sqrt(500))
    assert batch.std() == pytest.approx(0.0995, rel=5 / np.sqrt(1000))


def test_no_link_is_slower_than_a_tenth_of_its_mean() -> None:
    clients = np.arange(20_000)
    timing = phones().sample(clients, job(clients, 1024.0), Draws(0, 20_000, 0))
    assert timing.down_s.max() <= 10 / LINK_SPEEDS[:, 0].min() + 1e-12
    assert timing.up_s.max() == pytest.approx(
        10 / LINK_SPEEDS[:, 2].min()
    )  # seven in a thousand of that one's are cut off


@pytest.mark.skipif(
    not SHARED.is_dir(),
    reason="no ../shared/data/uci_har beside the repository: the real data are shared, not committed",
)
@pytest.mark.parametrize(("nexus", "redmi", "seconds"), [(10, 11, 185.5), (15, 6, 228.2), (14, 7, 219.6)])
def test_the_mean_job_of_fedbalancer_on_uci_har(nexus: int, redmi: int, seconds: float) -> None:
    """Classes of phones in FedBalancer's logs for seeds 0, 1, 2, and mean seconds of training over the 21 subjects.

    The logs count whole batches, and do not say which phone a subject has: 3 % covers both.
    """
    if not SHARED.is_dir():
        pytest.skip("no ../shared/data/uci_har beside the repository: the real data are shared, not committed")
    subjects = pq.read_table(SHARED / "train.parquet", columns=["subject"]).column("subject").to_numpy()
    n = np.unique(subjects, return_counts=True)[1]
    assert len(n) == nexus + redmi == 21
    nexus_timing, redmi_timing = (
        phones(kind, "har").expect(np.arange(21), job(n), Draws(0, 21)) for kind in (NEXUS, REDMI)
    )
    mean = (nexus * nexus_timing.finish_s(E).mean() + redmi * redmi_timing.finish_s(E).mean()) / 21
    assert mean == pytest.approx(seconds, rel=0.03)


def read_logged_column(method: str, seed: int, column: str) -> Values:
    """A column of the authors' rounds of UCI-HAR."""
    with gzip.open(LOGS, "rt") as file:
        rows = [row for row in csv.DictReader(file) if (row["method"], row["seed"]) == (method, str(seed))]
    return np.array([float(row[column]) for row in rows if row[column]])


@pytest.mark.skipif(
    not (SHARED.is_dir() and LOGS.exists()),
    reason="no ../shared/data/uci_har and ../shared/papers/tables beside the repository: shared, not committed",
)
@pytest.mark.parametrize(("seed", "nexus"), [(0, 10), (1, 15)])
def test_rounds_last_as_long_as_in_the_authors_logs(seed: int, nexus: int) -> None:
    """Five of 21 subjects a round, with as many slow phones as in FedBalancer's logs.

    T includes transfers. Compared are rounds that wait for all clients, arrivals before T, and the duration of rounds
    in which late clients do as many epochs as fit.
    """
    subjects = pq.read_table(SHARED / "train.parquet", columns=["subject"]).column("subject").to_numpy()
    work = job(np.unique(subjects, return_counts=True)[1], 6_410_008.0)  # bytes of their model
    all_clients, rng = np.arange(21), np.random.default_rng(seed)
    deadline = read_logged_column("fedavg_1T", seed, "ddl")[0]
    T, wait_for_all, arrived, partial_work = (np.empty(100) for _ in range(4))
    for t in range(100):
        slow, chosen = np.isin(all_clients, rng.permutation(21)[:nexus]), np.sort(rng.permutation(21)[:5])

        def mix_phones(how: str, t: int = t, slow: np.ndarray = slow) -> Timing:
            timings = [getattr(phones(kind, "har"), how)(all_clients, work, Draws(t, 21, t)) for kind in (NEXUS, REDMI)]
            return Timing(*(np.where(slow, *(getattr(values, part) for values in timings)) for part in PARTS))

        T[t] = mix_phones("expect").finish_s(E).mean()
        timing = mix_phones("sample")
        cohort = Timing(*(getattr(timing, part)[chosen] for part in PARTS))
        wait_for_all[t] = compute_outcome(cohort, E, np.inf, partial_work=False).train_s
        arrived[t] = compute_outcome(cohort, E, deadline, partial_work=False).is_in_time.sum()
        partial_work[t] = compute_outcome(cohort, E, deadline, partial_work=True).train_s
    assert T.mean() == pytest.approx(deadline, rel=0.03)
    assert np.median(wait_for_all) == pytest.approx(np.median(read_logged_column("fedavg_WFA", seed, "dur")), rel=0.03)
    assert arrived.mean() == pytest.approx(read_logged_column("fedavg_1T", seed, "ok").mean(), abs=0.2)
    assert partial_work.mean() == pytest.approx(read_logged_column("fedprox_mu_0_0_1T", seed, "dur").mean(), rel=0.03)


@pytest.mark.parametrize("proportions", [[0.0, 0.0, 0.0], [1.0, 2.0], []])
def test_the_proportions_must_be_three_and_not_all_zero(proportions: list[float]) -> None:
    with pytest.raises(OptionError, match="proportions must be three numbers"):
        Phones("femnist", 1.0, proportions)


def test_every_workload_has_three_classes() -> None:
    assert all(len(time.phone_ms) == 3 for time in BATCH_TIMES.values())
