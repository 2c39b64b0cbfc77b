"""Tests of benchmarks/small_forms.py: its page has a row per run, and it rejects unknown datasets."""

from pathlib import Path

import numpy as np
import pytest

from benchmark_scripts import load_script
from fedcohort.startup import components
from run_harness import compose_overrides


def test_the_page_has_a_row_per_run_and_mentions_other_load(monkeypatch: pytest.MonkeyPatch) -> None:
    small_forms = load_script("small_forms", monkeypatch)
    choices = {"dataset": "cmnist", "selector": "feddiverse", "agg": "fedavg"}
    summary = {"choices": choices, "rounds": 25, "final": {"test/acc": 0.51234}}
    text = small_forms.page([small_forms.FormRun("feddiverse_cmnist_cpu", 90.0, summary)], load=1.26)
    assert "with other processes running (up to 1.3 at a time)" in text.replace("\n", " ")
    *_, last_line = text.splitlines()
    assert last_line == "| `feddiverse_cmnist_cpu` | `cmnist` | `feddiverse` | `fedavg` | 25 | 1.5 | 0.512 |"
    assert "other processes" not in small_forms.page([], load=0.2)


def test_generated_data_have_no_accuracy_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    small_forms = load_script("small_forms", monkeypatch)
    assert small_forms.dataset_of("fedbalancer_reddit_cpu") == "reddit"
    choices = {"dataset": "reddit", "selector": "oort", "agg": "fedavg"}
    summary = {"choices": choices, "rounds": 40, "final": {"test/acc": 0.51234}}
    *_, last_line = small_forms.page(
        [small_forms.FormRun("fedbalancer_reddit_cpu", 90.0, summary, generated=True)], load=0.0
    ).splitlines()
    assert last_line == "| `fedbalancer_reddit_cpu` | `reddit` | `oort` | `fedavg` | 40 | 1.5 |  |"


def test_generated_reddit_data_load_like_the_original(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made_data = load_script("made_data", monkeypatch)
    made_data.write_tables("reddit", tmp_path)
    raw = components.make_component(
        compose_overrides("dataset=reddit", f"dataset.path={tmp_path}", "model=word_lstm"), "dataset"
    ).load(0)
    assert (len(raw.train_y), len(raw.test_y), raw.n_classes) == (29_412, 3_268, 10_000)
    assert len(np.unique(raw.train_owner)) == 813


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("mnist=data", "no reduced experiment uses mnist: choose from celeba, cifar10, "),
        ("cmnist=generated", "cmnist cannot be generated, only emnist, femnist, "),
    ],
)
def test_the_script_rejects_a_dataset_that_cannot_be_used(
    argument: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_forms = load_script("small_forms", monkeypatch)
    monkeypatch.setattr(
        small_forms, "dataset_of", lambda form: form.split("_")[1]
    )  # saves two compositions of eleven configurations
    with pytest.raises(SystemExit, match=message):
        small_forms.main([argument])
