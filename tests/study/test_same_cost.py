"""References of equal cost: the baseline runs until it has spent what another method spent with the same seed."""

from pathlib import Path
from typing import Any

import pytest

from config_options import CONFIGS
from fedcohort.errors import OptionError
from fedcohort.study import report, runner
from fedcohort.study.definition import Condition, Study, list_conditions
from fedcohort.study.progress import describe_runs
from fedcohort.study.result_files import DONE
from fedcohort.study.results import load_results as load_results
from fedcohort.study.runner import StudyRunner
from fedcohort.study.same_cost import resolve_conditions
from study.small_study import make_results, run_study, write_study

BYTES, FLOPS = {"of": "powd", "equal": "bytes"}, {"of": "powd", "equal": "client_flops"}
SETTINGS = {"equal": {"overrides": ["heterogeneity=iid"]}}


def study_of(folder: Path, **changes: object) -> Study:
    options = {"methods": ["powd", "round_robin"], "settings": SETTINGS, "same_cost": {"same_bytes": BYTES}}
    return write_study(folder / "studies" / "tiny", **(options | changes))


def limits_of(study: Study, results: Any, method: str) -> list[Condition]:
    """Return the resolved conditions of a reference, one per seed."""
    conditions = resolve_conditions(study, list_conditions(study), study.seeds, results.rows)
    return [condition for condition in conditions if condition.method == method]


def test_a_reference_spends_what_the_other_method_spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The round before its last one has not reached the cost; a second command does nothing."""
    references = {"same_bytes": BYTES, "same_flops": FLOPS, "same_robin": {"of": "round_robin", "equal": "bytes"}}
    study, lines = study_of(tmp_path, same_cost=references), list[str]()
    results = run_study(study, tmp_path / "logs", log=lines)
    assert lines[0] == "0 of 6 runs are done, 6 to do"
    assert lines[7] == "0 of 6 runs are done, 6 to do"
    for seed in study.seeds:
        method, same_bytes, same_flops = (
            results.rows["equal", name, seed] for name in ("powd", "same_bytes", "same_flops")
        )
        spent = results.curves["equal", "same_bytes", seed].costs["bytes"]
        assert spent[-2] < method["bytes"] <= spent[-1] == same_bytes["bytes"]
        assert (
            same_flops["client_flops"]
            >= method["client_flops"]
            > same_flops["client_flops"] * (1 - 1.5 / same_flops["rounds"])
        )
        assert same_bytes["rounds"] > 3 < same_flops["rounds"]
        # round_robin costs what random costs: the run of random is the reference
        robin, random = (results.rows["equal", name, seed] for name in ("same_robin", "random"))
        assert [robin[name] for name in ("fingerprint", "when")] == [random[name] for name in ("fingerprint", "when")]
    assert sum("the same run as equal random" in line for line in lines) == 2

    monkeypatch.setattr(runner, "run_tasks", lambda tasks, launch: (pytest.fail("repeated") for _ in tasks))
    assert run_study(study, tmp_path / "logs").rows.keys() == results.rows.keys()
    work = StudyRunner(study, load_results(study), CONFIGS, tmp_path / "logs", False, lines.append)
    assert work.find_progress(list_conditions(study), study.seeds).count_runs(DONE) == 12
    assert not work.mark_changed_runs().changed
    page = report.write_study_report(study, work.results)[1].read_text()
    assert "equal: powd minus same_bytes, at equal bytes on each seed: " in page
    assert "equal: round_robin minus same_robin, at equal bytes" in page
    assert "On 2 of these seeds random itself costs the same up to one round" in page
    assert page.count("of these seeds random itself") == 1
    assert "| same_bytes | " in page, "a reference is a line of the tables"


def test_a_reference_waits_for_the_other_method(tmp_path: Path) -> None:
    """Its limit is that of the run with the same seed; a changed cost makes the run of the reference another one."""
    study = study_of(tmp_path, seeds=[0, 1])
    results, lines = make_results(study, {"equal": {"random": [0.5, 0.5], "powd": [0.6, 0.6]}}), list[str]()
    for seed, n_bytes in enumerate((3e6, 1.1e6)):
        results.rows["equal", "powd", seed] |= {"rounds": 10, "bytes": n_bytes}
        results.rows["equal", "random", seed] |= {"rounds": 5}
    first, second = limits_of(study, results, "same_bytes")
    assert (first.seeds, second.seeds) == ((0,), (1,))
    assert first.overrides[-2:] == ("until.bytes=3000000.0", "rounds=1000")
    assert not any(word.startswith("until.") for word in second.overrides), "random costs 1 MB in 5 rounds of 0.2 MB"
    results.rows["equal", "powd", 1]["bytes"] = 1.2e6
    assert limits_of(study, results, "same_bytes")[1].overrides[-2] == "until.bytes=1200000.0"

    del results.rows["equal", "powd", 1]
    assert [condition.awaited_method for condition in limits_of(study, results, "same_bytes")] == ["", "powd"]
    work = StudyRunner(study, results, CONFIGS, tmp_path / "logs", False, lines.append)
    progress = work.find_progress(list_conditions(study), [1])
    assert progress.states["equal", "same_bytes", 1] == "missing"
    assert "same_bytes" in describe_runs(study, progress, results)
    conditions = list_conditions(study, methods=["same_bytes"])
    assert [condition.method for condition in conditions] == ["random", "powd", "same_bytes"]
    reference_conditions = [condition for condition in conditions if condition.method == "same_bytes"]
    work.run_conditions(reference_conditions, [1])
    message = "references of same_cost start after the runs of powd, whose cost they spend"
    assert lines[-2:] == ["0 of 1 run is done, 0 to do", message]


def test_a_reference_has_the_cohort_the_seeds_and_the_settings_of_its_method(tmp_path: Path) -> None:
    """Its runs have no clock, and a reference with other overrides is never the run of the baseline."""
    settings = {name: {"overrides": [f"partition.alpha={name[-1]}", "until.virtual_s=50"]} for name in ("a1", "a2")}
    settings["a1"]["methods"], settings["a2"]["methods"] = ["wide", "same_bytes"], ["round_robin"]
    wide = {"of": "wide", "equal": "bytes"}
    study = study_of(
        tmp_path,
        common=["partition=dirichlet"],
        methods=[{"wide": ["selector=powd", "cohort=6"]}, "round_robin"],
        seed_counts={"wide": 1},
        settings=settings,
        same_cost={"same_bytes": wide, "mine": {**wide, "overrides": ["cohort=1"]}},
    )
    assert study.same_cost["same_bytes"].overrides == ("selector=random", "cohort=6")
    assert study.overrides["mine"] == ("cohort=1",)
    conditions = [condition for condition in list_conditions(study) if condition.method in study.same_cost]
    assert [(condition.setting, condition.method, condition.seeds) for condition in conditions] == [
        ("a1", "same_bytes", (0,))
    ]
    results = make_results(study, {"a1": {"random": [0.5], "wide": [0.6]}})
    for method in ("random", "wide"):
        results.rows["a1", method, 0]["rounds"] = 10
    (condition,) = limits_of(study, results, "same_bytes")
    assert condition.overrides[-3:] == ("until.bytes=1000000.0", "rounds=1000", "until.virtual_s=null")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"same_cost": {"powd": BYTES}}, "same_cost: powd is already the name of a method"),
        (
            {"same_cost": {"x": {**BYTES, "of": "random"}}},
            "same_cost.x.of must be one of powd, round_robin, got 'random'",
        ),
        ({"same_cost": {"x": {**BYTES, "equal": "time"}}}, "equal must be one of bytes, client_flops, got 'time'"),
        ({"same_cost": {"x": {"of": "powd"}}}, "same_cost.x.equal is missing"),
        ({"same_cost": {"x": {**BYTES, "word": []}}}, "same_cost.x"),
        (
            {"same_cost": {"x": {**BYTES, "overrides": ["selector=full", "rounds=9"]}}},
            "same_cost.x.overrides: rounds=9 contradicts of: powd, whose cost ends the runs. Leave it out",
        ),
        (
            {"same_cost": {"x": {**BYTES, "overrides": ["selector=full", "+until.virtual_s=60"]}}},
            r"same_cost.x.overrides: \+until.virtual_s=60 contradicts of: powd",
        ),
        ({"horizon": 2}, "horizon=2 contradicts same_cost, whose runs may have more rounds: leave out"),
        (
            {"settings": {"equal": {**SETTINGS["equal"], "methods": ["round_robin", "same_bytes"]}}},
            "settings.equal.methods: same_bytes needs the runs of powd: add powd",
        ),
    ],
)
def test_a_reference_that_cannot_be_run_is_rejected(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=message):
        study_of(tmp_path, **changes)
