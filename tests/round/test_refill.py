"""Places that become free during a round are filled in the order of arrivals; a client starts once in a round."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from fedcohort.round.queries import QueryAnswerer
from round_harness import run_without_files
from run_harness import run_training, same_bits

OPTIONS = ("deadline=buffered", "agg=fedbuff", "device=shifted_exponential", "device.persistent=true", "cohort=3")


@pytest.mark.parametrize("selector", ["random", "oort", "flash", "powd", "ucb_cs"])
def test_no_client_starts_while_it_works_or_waits_for_the_step(selector: str) -> None:
    """In flight before, or selected twice: neither is possible, and the places are full as long as clients are left."""
    run = run_without_files(*OPTIONS, "deadline.concurrency=5", f"selector={selector}", "rounds=8")
    in_flight: set[int] = set()
    for report in run.reports[1:]:
        cohort = report.cohort.tolist()
        assert len(cohort) == len(set(cohort))
        assert not in_flight & set(cohort)
        now_in_flight = set(np.flatnonzero(report.clients["in_flight"] == 1).tolist())
        assert now_in_flight == (in_flight | set(cohort)) - set(report.arrived.tolist())
        in_flight = now_in_flight


def test_a_refill_is_charged_like_any_job_and_uses_the_answers_of_the_step() -> None:
    """pow-d queries its 6 candidates once a step; a client that starts later costs a download more if it is none."""
    run = run_without_files(*OPTIONS, "selector=powd", "selector.candidates=6", "deadline.concurrency=4", "rounds=6")
    for before, after in zip(run.reports[1:], run.reports[2:], strict=False):
        queried_ids = np.flatnonzero(after.clients["queried"])
        downloads = (after.metrics["comm/down_bytes"] - before.metrics["comm/down_bytes"]) / 2600
        assert downloads == len(set(after.cohort.tolist()) | set(queried_ids.tolist()))


def test_the_server_measures_the_model_once_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The selector reads the server's loss of w_t, and is called for several clients in each of the 4 steps."""
    steps: list[int] = []
    measure = QueryAnswerer.measure_server_signals

    def count_query(self: QueryAnswerer) -> Mapping[str, float]:
        steps.append(1)
        return measure(self)

    monkeypatch.setattr(QueryAnswerer, "measure_server_signals", count_query)
    run = run_without_files(*OPTIONS, "selector=flash_progress", "deadline.concurrency=5", "rounds=4")
    assert len(steps) == 4
    assert max(map(len, run.cohorts[1:])) > 1, "more than one client starts in a step"


def test_no_update_is_staler_than_the_bound_and_a_bound_that_is_never_reached_has_no_effect() -> None:
    options = (*OPTIONS, "clients=80", "deadline.buffer=1", "deadline.concurrency=6", "rounds=16")
    unbounded, large_bound, bounded = (
        run_without_files(*options, f"deadline.wait_for_stale={bound}") for bound in ("null", "99", "4")
    )
    assert same_bits(unbounded, large_bound)
    max_staleness = [max(report.metrics["staleness/max"] for report in run.reports[1:]) for run in (unbounded, bounded)]
    assert max_staleness[0] > 4
    assert max_staleness[1] == 4
    assert [report.metrics["round/in_flight"] for report in bounded.reports[1:]] == [5] * 16, "places were refilled"


def test_a_resume_in_the_middle_has_equal_bits(tmp_path: Path) -> None:
    options = (*OPTIONS, "selector=flash", "agg=scaffold", "deadline.max_staleness=3")
    uninterrupted = run_training(tmp_path / "whole", *options, "rounds=6")
    run_training(tmp_path / "stopped", *options, "rounds=3")
    assert same_bits(uninterrupted, run_training(tmp_path / "stopped", *options, "rounds=6", "resume=true"))
