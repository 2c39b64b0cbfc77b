"""The benchmark of the papers' small forms: its page has a row for each run, and unknown data are refused."""

from pathlib import Path

import numpy as np
import pytest

from fedcohort.startup import components
from run_harness import compose_words
from scripts import load_script


def test_its_page_has_a_row_for_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    forms = load_script("small_forms", monkeypatch)
    choices = {"dataset": "cmnist", "selector": "feddiverse", "agg": "fedavg"}
    summary = {"choices": choices, "rounds": 25, "final": {"test/acc": 0.51234}}
    text = forms.page([forms.Took("feddiverse_cmnist_cpu", 90.0, summary)], load=1.26)
    assert "with others at work on it (up to 1.3 beside its own)" in text.replace("\n", " ")
    *_, line = text.splitlines()
    assert line == "| `feddiverse_cmnist_cpu` | `cmnist` | `feddiverse` | `fedavg` | 25 | 1.5 | 0.512 |"
    assert "others at work" not in forms.page([], load=0.2)


def test_of_data_that_were_made_up_there_is_no_accuracy(monkeypatch: pytest.MonkeyPatch) -> None:
    forms = load_script("small_forms", monkeypatch)
    assert forms.dataset_of("fedbalancer_reddit_cpu") == "reddit"
    choices = {"dataset": "reddit", "selector": "oort", "agg": "fedavg"}
    summary = {"choices": choices, "rounds": 40, "final": {"test/acc": 0.51234}}
    *_, line = forms.page([forms.Took("fedbalancer_reddit_cpu", 90.0, summary, made=True)], load=0.0).splitlines()
    assert line == "| `fedbalancer_reddit_cpu` | `reddit` | `oort` | `fedavg` | 40 | 1.5 |  |"


def test_made_up_reddit_is_read_as_the_real_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = load_script("made_data", monkeypatch)
    made.make("reddit", tmp_path)
    raw = components.make(
        compose_words("dataset=reddit", f"dataset.path={tmp_path}", "model=word_lstm"), "dataset"
    ).load(0)
    assert (len(raw.train_y), len(raw.test_y), raw.n_classes) == (29_412, 3_268, 10_000)
    assert len(np.unique(raw.train_owner)) == 813


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("mnist=data", "mnist: name datasets out of celeba, cifar10, "),
        ("cmnist=made", "cmnist: nothing is made up but emnist, femnist, "),
    ],
)
def test_data_that_no_form_has_are_refused(word: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    forms = load_script("small_forms", monkeypatch)
    monkeypatch.setattr(forms, "dataset_of", lambda form: form.split("_")[1])  # or Hydra composes eleven, twice
    with pytest.raises(SystemExit, match=says):
        forms.main([word])
