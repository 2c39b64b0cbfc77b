"""Where the time goes: stages that add up to no more than the whole."""

import time
from pathlib import Path

import pytest

from config_options import CONFIGS
from fedcohort.command.profile import profile_run
from fedcohort.errors import OptionError
from fedcohort.host.stopwatch import STAGE_NAMES, Stopwatch
from run_harness import SMALL


def test_a_nested_stage_counts_only_in_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 1.0, 4.0, 9.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(times))
    watch = Stopwatch()
    with watch.measure_stage_time("select"), watch.measure_stage_time("probe"):
        pass
    spent = watch.take_lap_seconds()
    assert (spent["select"], spent["probe"]) == (1.0 + 5.0, 3.0)
    assert set(watch.take_lap_seconds().values()) == {0.0}


@pytest.mark.parametrize("processes", [1, 2])
def test_a_run_is_split_into_stages(processes: int) -> None:
    overrides = [override for override in SMALL if not override.startswith(("callback", "logger"))]
    times = profile_run(
        [*overrides, "selector=flash", f"rounds={3 + processes}", f"trainer.devices={processes}"], Path(CONFIGS)
    )
    assert times["rounds"] == 2 + processes
    assert set(times["stage_s"]) == set(STAGE_NAMES)
    assert all(times["stage_s"][stage] > 0 for stage in STAGE_NAMES)
    assert sum(times["stage_s"].values()) <= times["wall_s"]


def test_a_run_of_one_round_is_rejected() -> None:
    with pytest.raises(OptionError, match="rounds must be an integer in"):
        profile_run(["rounds=1"], Path(CONFIGS))
