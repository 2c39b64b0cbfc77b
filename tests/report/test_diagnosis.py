"""The page of a diagnosis: what a user reads in each case, its table, its numbers and its figure."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from excess_loss_example import LOSSES
from fedcohort.diagnosis.class_balance import effective_classes
from fedcohort.diagnosis.label_noise import NoiseEstimate, estimate_noise
from fedcohort.diagnosis.speeds import SpeedEstimate
from fedcohort.report import diagnosis as diagnosis_page
from fedcohort.report.diagnosis import PICTURE_FILE, describe_diagnosis, list_diagnosis_facts, write_diagnosis_page
from fedcohort.results.diagnosis import ClassSkew, ProbeResult, RunDiagnosis
from fedcohort.results.near_settings import DESCRIPTOR_NAMES, StudySetting, describe_federation
from record.example_run import make_run_info

NOISE = estimate_noise(LOSSES)


def make_probe_result(round: int, gap: float, noise: NoiseEstimate = NOISE) -> ProbeResult:
    return ProbeResult(round, np.arange(6), LOSSES, replace(noise, gap=gap))


@pytest.fixture
def diagnosis(tmp_path: Path) -> RunDiagnosis:
    counts = LOSSES.class_counts
    skew = ClassSkew(counts, effective_classes(counts), 1.9, 2.0)
    return RunDiagnosis(
        make_run_info(tmp_path, clients=6, noise_rate=np.zeros(6)),
        25,
        [make_probe_result(13, 0.6), make_probe_result(25, 0.62)],
        skew,
        None,
        1.0,
        np.ones(6),
        1234.0,
        12,
    )


def test_the_page_describes_persistent_label_noise(diagnosis: RunDiagnosis) -> None:
    text = describe_diagnosis(diagnosis)
    assert "it leaves out clients with more wrong labels." in text
    assert "At 2 of 6 clients the share of wrong labels is about 0.68" in text
    assert "persisted over the probes (0.60, 0.62)" in text
    assert "\n| 5 | 0.70 | " in text
    cost = f"the mean cost of a wrong label, {NOISE.fit.nats_per_wrong_label:.2f} nats. It can be below 0 or above 1"
    assert cost in text
    assert "2 probes, with 12 forward passes of a client over its samples. All queries of the run took 1.23 kB." in text
    assert "Avoid balance" not in text


@pytest.mark.parametrize(
    ("gaps", "sentence", "advice"),
    [
        ((0.05, 0.04), "No group of clients has clearly more wrong labels", "`selector=random`"),
        ((0.6,), "A second probe, 12 rounds later", "Not known yet"),
        ((0.6, 0.3), "probably their data are of another kind", "`selector=random`"),
        ((0.3, 0.23), "probably their data are of another kind", "`selector=random`"),
        ((0.3, 0.23, 0.22), "persisted over the probes (0.30, 0.23, 0.22)", "`selector=auto`"),
        ((), "Not measured: the run's selector does not ask for `class_loss`", "Not known yet"),
        ((1.3,), "Too early", "Not known yet"),
    ],
)
def test_the_page_describes_each_noise_case_with_its_advice(
    diagnosis: RunDiagnosis, gaps: tuple[float, ...], sentence: str, advice: str
) -> None:
    probe_results = [make_probe_result(13 + 12 * number, gap) for number, gap in enumerate(gaps)]
    text = describe_diagnosis(replace(diagnosis, probe_results=probe_results))
    assert sentence in text
    assert advice in text
    assert "\n\n\n\n" not in text


def test_the_page_describes_uneven_cohorts_and_persistent_speeds(diagnosis: RunDiagnosis) -> None:
    quiet = replace(diagnosis, probe_results=[make_probe_result(13, 0.05)])
    uneven = replace(quiet, skew=replace(quiet.skew, n_cohort_classes=1.2))  # type: ignore[type-var]
    assert "Random cohorts hold 1.2 of 2.0 effective classes." in describe_diagnosis(uneven)
    speeds = SpeedEstimate(0.8, 0.6, 0.9, np.zeros(6), 0.1)
    text = describe_diagnosis(replace(quiet, speeds=speeds, speed_gain=1.7))
    assert "`selector=auto selector.speed=true`" in text
    assert "80.0 % [60.0 %, 90.0 %] of the variance of speeds persists" in text


@pytest.mark.usefixtures("rendered_figures")
def test_a_diagnosis_writes_page_picture_and_json(diagnosis: RunDiagnosis, tmp_path: Path) -> None:
    page = write_diagnosis_page(tmp_path, diagnosis)
    html = page.read_text()
    assert "<table" in html
    assert "data:image/png" in html
    assert (tmp_path / PICTURE_FILE).is_file()
    numbers = json.loads((tmp_path / "diagnosis.json").read_text())
    assert numbers == json.loads(json.dumps(list_diagnosis_facts(diagnosis)))
    assert [client["client"] for client in numbers["label_noise"]["clients"][:2]] == [5, 3]
    assert numbers["advice"] == "noise"


def test_simulated_rates_are_shown_but_not_used(diagnosis: RunDiagnosis) -> None:
    rates = np.array([0.0, 0, 0, 0.5, 0, 0.5])
    with_rates = replace(diagnosis, info=replace(diagnosis.info, noise_rate=rates))
    assert "simulated rate (not used)" in describe_diagnosis(with_rates)
    assert describe_diagnosis(diagnosis).splitlines()[:12] == describe_diagnosis(with_rates).splitlines()[:12]


def make_near_settings(diagnosis: RunDiagnosis, *gaps: float) -> list[StudySetting]:
    """Return settings of different studies that differ from `diagnosis` by these gaps of label noise only."""
    facts = {"dataset": "digits", "horizon": "240 rounds", "seeds": "5", "random": "93.9"}
    facts |= {"selectors": "7", "best": "oort", "best_points": "+1.0 [0.5, 1.5]", "auto_points": ""}
    facts |= {"worst": "powd", "worst_points": "-9.0 [-9.5, -8.5]"}
    descriptors, first = describe_federation(diagnosis), np.eye(len(DESCRIPTOR_NAMES))[0]
    return [
        StudySetting({**facts, "label": f"gap {gap}", "study": f"study_{gap}"}, descriptors + gap * first)
        for gap in gaps
    ]


def test_the_page_lists_near_settings_with_their_gains(
    diagnosis: RunDiagnosis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nearest distances of 0.1, 0 and 5 are 0.1, 0.1 and 4.9 of the deviation, with the quantile 0.1 + 0.5 x 4.8."""
    monkeypatch.setattr(diagnosis_page, "load_settings", lambda: make_near_settings(diagnosis, 0.1, 0.0, 5.0))
    first, second = (line for line in describe_diagnosis(diagnosis).splitlines() if "`studies/" in line)
    assert first == (
        "| digits: gap 0.0, `studies/study_0.0/README.md` | 0.00 | 240 rounds, 5 seeds | 93.9 % "
        "| `oort` +1.0 [0.5, 1.5], best of 7 | `powd` -9.0 [-9.5, -8.5] | not run |"
    )
    assert second.startswith("| digits: gap 0.1, ")
    near_settings = list_diagnosis_facts(diagnosis)["near_settings"]
    assert [setting["label"] for setting in near_settings["nearest"]] == ["gap 0.0", "gap 0.1", "gap 5.0"]
    assert near_settings["nearest"][2]["distance"] == pytest.approx(5 / np.std([0.1, 0, 5]))
    assert near_settings["usual_distance"] == pytest.approx((0.1 + 0.5 * 4.8) / np.std([0.1, 0, 5]))
    assert near_settings["descriptors"]["noise_gap"] == 0.62


def test_the_page_says_that_no_setting_is_near(diagnosis: RunDiagnosis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gaps of 8, 8.1 and 8.3 have a deviation of 0.125, so that the first is at 64.1."""
    monkeypatch.setattr(diagnosis_page, "load_settings", lambda: make_near_settings(diagnosis, 8.0, 8.1, 8.3))
    text = describe_diagnosis(diagnosis)
    assert 'None is near: the nearest one, "gap 8.0" of `studies/study_8.0`, has distance 64.14.' in text
    assert "README.md" not in text


def test_unknown_descriptors_are_named(diagnosis: RunDiagnosis) -> None:
    without_noise = describe_diagnosis(replace(diagnosis, probe_results=[]))
    assert "`noise_gap`, `mean_noise_rate`" in without_noise
    without_probes = replace(diagnosis, probe_results=[], skew=None)
    sentence = "Too little was measured for a comparison: `noise_gap`, `mean_noise_rate`, `client_classes`"
    assert sentence in describe_diagnosis(without_probes)
    assert list_diagnosis_facts(without_probes)["near_settings"]["descriptors"]["noise_gap"] is None
