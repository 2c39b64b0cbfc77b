"""The benchmark of the papers' small forms: its page has a row for each run, and unknown data are refused."""

import pytest

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


def test_data_that_no_form_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    forms = load_script("small_forms", monkeypatch)
    with pytest.raises(SystemExit, match="mnist: name datasets out of celeba, cifar10, "):
        forms.main(["mnist=data"])
