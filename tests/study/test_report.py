"""The files of a report on synthetic results: their content, and that they need no other files."""

import csv
import math
import re
from pathlib import Path

import pandas as pd
import pytest

from fedcohort.study import report
from fedcohort.study.page_tables import MAX_SETTING_COLUMNS, split_settings
from fedcohort.study.results import Results, load_results
from study.small_study import make_results, write_study
from study.test_judge import LATE_MEANS, METHODS


def page_of(folder: Path) -> str:
    return (folder / "README.md").read_text()


@pytest.fixture(scope="module")
def study_report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Results, list[Path]]:
    """The folder, the results and the files of a report with `<`, `&` and a script in its title and label."""
    folder = tmp_path_factory.mktemp("study")
    settings = {"equal": {"overrides": [], "target": 0.5, "label": "<script>x</script>"}}
    settings["noisy"] = {"overrides": ["heterogeneity=noise_bimodal"], "bounds": {"clean": ["heterogeneity=iid"]}}
    study = write_study(folder, title="a < b & c", settings=settings, notes=["flash is blind here"], **METHODS)
    results = make_results(study, LATE_MEANS)
    return folder, results, report.write_study_report(study, results)


def test_the_page_starts_with_the_answer(study_report: tuple[Path, Results, list[Path]]) -> None:
    folder, _, files = study_report
    text = page_of(folder)
    opening = text[: text.index("`fedcohort study report ")]
    assert (
        "**In 1 of 2 settings, a method is significantly better than random** (paired t-tests, Holm over all 4 tests "
        "of methods in all settings; with Holm within each setting, in 1). In 1 other setting, the headroom is "
        "above 0, and no method is significantly better. " in opening
    )
    assert (
        "Paired seeds: 3. The result of a run is the mean of test/acc over its evaluations in the last sixth of"
        in opening
    )
    assert "- **noisy**: significantly better than random: **flash +10.0 [10.0, 10.0]** at equal cost." in opening
    assert "no method is significantly better than random. Headroom: +10.0 [10.0, 10.0] (oracle_clean)." in opening
    assert "(oracle_clean). A difference of 1 point needs 17 seeds." in opening
    assert "| flash | 83.0 [80.5, 85.5] (n=3) | +2.0 [-0.5, 4.5] | 0.148 | not settled | 20 % [-5, 45] | 1 |" in text
    assert "- all of 2 seeds in noisy: full, oracle_diverse\n" in text
    assert "- all of 2 seeds in all requested settings: bound clean\n" in text
    assert "- flash is blind here\n" in text
    assert [path.name for path in files[:2]] == ["report.html", "README.md"]
    assert {path.name for path in files} >= {"map.png", "ranks.png", "numbers.csv"}
    assert all(path.stat().st_size for path in files)


def test_the_html_page_is_self_contained_and_escapes_names(study_report: tuple[Path, Results, list[Path]]) -> None:
    text = (study_report[0] / "report.html").read_text()
    assert "<h1>a &lt; b &amp; c</h1>" in text
    assert "&lt;script&gt;x&lt;/script&gt;" in text
    sources = re.findall(r'(?:src|href)="?([^">]{0,30})', text)
    assert len(sources) == 2
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert not re.search(r"https?://|url\(|@import|<script|<link", text)
    assert text.count("<table") == page_of(study_report[0]).count("\n| --- |")


def test_tables_are_written_as_csv_and_latex(study_report: tuple[Path, Results, list[Path]]) -> None:
    folder = study_report[0]
    with (folder / "tables" / "numbers.csv").open() as file:
        rows = {(row["cell"], row["selector"]): row for row in csv.DictReader(file)}
    flash = rows["equal", "flash"]
    assert float(flash["diff"]) == pytest.approx(0.02)
    assert float(flash["gap_closed"]) == pytest.approx(0.2)
    assert (float(flash["rank"]), flash["sign"], rows["equal", "random"]["diff"]) == (1.0, "0", "")
    costs = ("bytes", "probe_bytes", "client_flops", "server_flops")
    assert [flash[name] for name in costs] == ["1000000.0", "500.0", "2.0", "7.0"]
    target = ("rounds_to_target", "virtual_s_to_target", "bytes_to_target", "reached")
    assert [flash[name] for name in target] == ["1.0", "60.0", "1000000.0", "3"]
    assert [rows["noisy", "flash"][name] for name in target] == [""] * 4  # it has no target
    assert rows["noisy", "flash"]["gap_closed"] == ""
    latex = (folder / "tables" / "setting_equal.tex").read_text()
    assert "Clean oracle" in latex
    assert r"20 \%" in latex


def test_outdated_tables_are_deleted_and_other_files_kept(tmp_path: Path) -> None:
    study = write_study(tmp_path, **METHODS)
    report.write_study_report(study, make_results(study, LATE_MEANS))
    user_file = tmp_path / "tables" / "mine.csv"
    user_file.write_text("a,b\n")
    table = tmp_path / "tables" / "setting_noisy.csv"
    assert table.exists()
    report.write_study_report(study, make_results(study, {"equal": LATE_MEANS["equal"]}))
    assert not table.exists()
    assert not table.with_suffix(".tex").exists()
    assert user_file.exists()
    assert (tmp_path / "tables" / "setting_equal.csv").exists()


def test_wide_tables_are_split_by_heterogeneity(tmp_path: Path) -> None:
    """Kinds of heterogeneity stay together where they fit; no table has more than eight columns of settings."""
    kinds = ["skew"] * 5 + ["noise"] * 3 + ["speed"] * 9
    settings = {f"c{i}": {"overrides": [], "heterogeneity_kind": kind} for i, kind in enumerate(kinds)}
    study = write_study(tmp_path, settings=settings)
    parts = split_settings(study, list(study.settings))
    assert [(title, len(members)) for title, members in parts] == [("skew, noise", 8), ("speed", 8), ("speed", 1)]
    assert [cell for _, members in parts for cell in members] == list(study.settings)
    assert split_settings(study, list(study.settings)[:MAX_SETTING_COLUMNS]) == [
        ("", list(study.settings)[:MAX_SETTING_COLUMNS])
    ]


def test_diverged_seeds_are_named(tmp_path: Path) -> None:
    """They have no difference and no test; where the baseline diverged, no row has one."""
    study = write_study(tmp_path, **METHODS)
    method_values = {"random": [0.8, 0.81, 0.82], "flash": [0.6, 0.62, 0.61], "powd": [0.8, math.nan, math.inf]}
    report.write_study_report(
        study,
        make_results(study, {"equal": method_values, "noisy": {**method_values, "random": [0.8, math.nan, 0.82]}}),
    )
    text = page_of(tmp_path)
    assert "Significantly worse: **flash -20.0 [-22.5, -17.5]** at equal cost. Diverged: powd on 2 of 3 seeds." in text
    assert "| powd | – (n=3, 2 diverged) | diverged on 2 |" in text
    assert "| powd | diverged | diverged |" in text
    assert "| random | – (n=3, 1 diverged) | – |" in text
    assert "| flash | -20.0▼ | – |" in text


def test_few_seeds_have_no_interval_and_no_verdict(tmp_path: Path) -> None:
    study = write_study(tmp_path, **METHODS, seeds=[0, 1, 2, 3])
    late_means = {"random": [0.6, 0.6, 0.4, 0.4], "flash": [0.6, 0.6, 0.6, 0.4], "powd": [0.4, 0.7]}
    report.write_study_report(study, make_results(study, {"equal": late_means}))
    text = page_of(tmp_path)
    assert "| powd | -5.0 (n=2) |" in text
    assert "| powd | 55.0 (n=2) | -5.0 |" in text
    rows = {line.split(" | ")[0]: line for line in text[text.index("### equal") :].splitlines() if " | " in line}
    assert rows["| random"].endswith(" | 2 of 4 |")  # half of the runs met the target of .5
    assert rows["| flash"].endswith(" | 1 round, 60 s, 1 MB |")
    first_seeds = {
        cell: {row: values[:1] for row, values in method_values.items()} for cell, method_values in LATE_MEANS.items()
    }
    report.write_study_report(study, make_results(study, first_seeds))
    assert "**No test was possible: no method has the seeds for it.** In 2, headroom is neither" in page_of(tmp_path)


def test_a_method_that_a_setting_excludes_is_not_missing(tmp_path: Path) -> None:
    """`powd` isn't asked for among equal clients; where it was run all the same it is in the table."""
    settings = {
        "equal": {"overrides": [], "methods": ["flash"]},
        "noisy": {"overrides": ["heterogeneity=noise_bimodal"]},
    }
    study = write_study(
        tmp_path, **(METHODS | {"settings": settings, "seeds": [0, 1, 2], "oracles": [], "references": []})
    )
    late_means = {"random": [0.8, 0.81, 0.82], "flash": [0.9, 0.9, 0.9]}
    report.write_study_report(study, make_results(study, {"equal": late_means, "noisy": late_means}))
    text = page_of(tmp_path)
    assert "- all of 3 seeds in all requested settings: powd\n" in text
    assert "- Settings that ask for some of the methods only, and have dashes for the others: equal.\n" in text
    per_setting = {"equal": late_means | {"powd": [0.8, 0.76]}, "noisy": late_means | {"powd": [0.8, 0.76, 0.81]}}
    report.write_study_report(study, make_results(study, per_setting))
    assert "| powd | -2.5 (n=2) | -2.0 |" in page_of(tmp_path)


def test_methods_with_few_seeds_and_variants_are_named(tmp_path: Path) -> None:
    """`full` has its one seed, and lacks nothing. An oracle of few seeds is named for reference."""
    seed_counts, variants = {"oracle_diverse": 3, "full": 1}, {"repairs": ["flash", "powd"]}
    study = write_study(tmp_path, seed_counts=seed_counts, variants=variants, **(METHODS | {"seeds": list(range(7))}))
    base_rows = {"random": [0.8] * 7, "oracle_clean": [0.801, *[0.8] * 6], "oracle_diverse": [0.86, 0.85, 0.87]}
    other_rows = {"flash": [0.8] * 7, "powd": [0.8] * 7, "full": [0.8]}
    report.write_study_report(
        study,
        make_results(
            study,
            {"equal": {**base_rows, **other_rows}, "noisy": {**base_rows, **other_rows, "bound:clean": [0.8] * 7}},
        ),
    )
    text = page_of(tmp_path)
    assert "## Missing" not in text
    # +.05, .06, .07: deviation .01 times 4.303 / sqrt(3)
    assert "For reference: oracle_diverse +6.0 [3.5, 8.5]." in text
    assert "- repairs: flash, powd are variants of one idea." in text
    assert "- Rows that are run on the first seeds only: oracle_diverse (3), full (1)." in text


def test_a_run_of_two_conditions_counts_once(tmp_path: Path) -> None:
    """A bound that is another setting's run has its row, seconds and all."""
    study = write_study(tmp_path, **METHODS)
    study_results = make_results(
        study, {"equal": {"random": [0.8, 0.8], "flash": [0.9, 0.9]}, "noisy": {"random": [0.7, 0.7]}}
    )
    for facts in study_results.rows.values():
        facts["wall_s"] = 1800.0
    for seed in (0, 1):
        source = ("equal", "random", seed)
        study_results.store_run(
            {**study_results.rows[source], "cell": "noisy", "selector": "bound:clean"}, study_results.curves[source]
        )
    report.write_study_report(study, study_results)
    assert "- 6 runs, 3.0 hours of one process, of commit c0ffee (6).\n" in page_of(tmp_path)
    # the same configuration once more, at another time, is a run of its own
    study_results.rows["noisy", "bound:clean", 0]["when"] = "later"
    report.write_study_report(study, study_results)
    assert "- 7 runs, 3.5 hours of one process, of commit c0ffee (7).\n" in page_of(tmp_path)


def test_jains_index_and_losses_are_shown_in_hundredths(tmp_path: Path) -> None:
    """.3 to .5 would be one digit. A loss of 1 - .35 instead of 1 - .3 is a positive difference, too."""
    options = {**METHODS, "common": ["eval.clients_every=1"], "verdict": {"detectable_difference": 0.01}}
    jain = {"random": [0.3, 0.4, 0.5], "flash": [0.35, 0.46, 0.54], "oracle_clean": [0.4, 0.52, 0.58]}
    losses = {method: [1 - x for x in values] for method, values in jain.items()}
    for metric, values, unit in (("clients/jain", jain, "hundredth"), ("test/loss", losses, "hundredth of a nat")):
        study = write_study(tmp_path / metric, **options, metric=metric)
        report.write_study_report(study, make_results(study, {"equal": values}))
        text = page_of(tmp_path / metric)
        assert "**flash +5.0 [2.5, 7.5]** at equal cost, 50 % [" in text
        assert f"A difference of 1 {unit} needs " in text
        assert ("Smaller values of test/loss are better: a positive" in text) == (metric == "test/loss")


def test_a_cost_is_stated_relative_to_the_baseline(tmp_path: Path) -> None:
    study = write_study(tmp_path, **METHODS)
    study_results = make_results(study, LATE_MEANS)
    for (_, row, _), facts in study_results.rows.items():
        facts["bytes"] = 3.07e6 if row == "flash" else 1e6
    report.write_study_report(study, study_results)
    text = page_of(tmp_path)
    assert "**flash +10.0 [10.0, 10.0]** at 3.07 times the bytes" in text
    assert "| 3.07 MB (×3.07) |" in text


def test_runs_that_ended_before_the_clock_are_named(tmp_path: Path) -> None:
    """Made-up runs take 60 s: of a clock of 100 s they use the first, of one of 60 all, and `equal` has none."""
    study = write_study(tmp_path, **METHODS)
    study_results = make_results(study, LATE_MEANS)
    for (cell, row, seed), facts in study_results.rows.items():
        clock_s = 100 if row == "flash" and seed < 2 else 60
        facts["budget"] = f"Budget(rounds=9, virtual_s={clock_s})" if cell == "noisy" else "Budget(rounds=9)"
    report.write_study_report(study, study_results)
    text = page_of(tmp_path)
    assert "60 s (×1.00), rounds ended 2 of 3" in text
    assert text.count(", rounds ended") == 1
    assert "more rounds might have improved it: noisy: flash (2 of 3).\n" in text


def test_correlations_of_scores_and_rewards_are_reported(tmp_path: Path) -> None:
    study = write_study(tmp_path, **METHODS)
    study_results = make_results(study, LATE_MEANS)
    for seed, (score, reward) in enumerate(((0.1, -0.5), (0.3, -0.3))):
        facts = study_results.rows["equal", "flash", seed]
        facts["follows"] = f'{{"score_noise": {score}, "reward_noise": {reward}, "explore_noise": 0.9}}'
    study_results.rows["equal", "powd", 0]["follows"] = '{"score_noise": 0.7}'  # it has no reward
    study_results.rows["noisy", "flash", 0]["follows"] = '{"reward_seconds": 0.25}'
    report.write_study_report(study, study_results)
    text = page_of(tmp_path)
    assert "| setting | method | score: label noise | reward: label noise | reward: seconds |" in text
    assert "| equal | flash | +0.20 | -0.40 | – |" in text
    assert "| noisy | flash | – | – | +0.25 |" in text
    assert "| equal | powd | +0" not in text


def test_epsilons_are_reported(tmp_path: Path) -> None:
    study = write_study(tmp_path, **METHODS)
    study_results = make_results(study, LATE_MEANS)
    for seed, epsilon in enumerate((120.0, 125.0, float("nan"))):
        study_results.rows["noisy", "flash", seed]["epsilon"] = epsilon
    report.write_study_report(study, study_results)
    assert "| flash | 122.5 |" in page_of(tmp_path).split("## Differential privacy of the reports")[1]


def test_shares_of_attackers_are_reported(tmp_path: Path) -> None:
    study = write_study(tmp_path, **METHODS)
    study_results = make_results(study, LATE_MEANS)
    for seed, share in enumerate((0.25, 0.3, float("nan"))):
        study_results.rows["noisy", "flash", seed]["attack_share"] = share
    report.write_study_report(study, study_results)
    text = page_of(tmp_path)
    assert "| method | noisy |\n" in text
    assert "| flash | 27.5 |" in text


def test_a_study_without_results_is_reported(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    report.write_study_report(study, load_results(study))
    assert "Nothing has been run yet: `fedcohort study run" in page_of(tmp_path)
    assert not (tmp_path / "map.png").exists()


def test_energy_is_shown_where_it_was_measured(tmp_path: Path) -> None:
    """flash spends 6 J a run and random 4 J: 1.5 times the energy."""
    study = write_study(tmp_path, **METHODS)
    results = make_results(study, LATE_MEANS)
    for (cell, method, _), row in results.rows.items():
        row["joules"] = math.nan if cell == "equal" else 6.0 if method == "flash" else 4.0  # NaN: older file
    report.write_study_report(study, results)
    text = page_of(tmp_path)
    assert "**flash +10.0 [10.0, 10.0]** at 1.50 times the energy" in text
    with_energy, without_energy = (
        (tmp_path / "tables" / f"setting_{cell}.csv").read_text() for cell in ("noisy", "equal")
    )
    assert "6 J (×1.50)" in with_energy
    assert "energy" not in without_energy
    numbers = pd.read_csv(tmp_path / "tables" / "numbers.csv").set_index(["cell", "selector"])["joules"]
    assert (numbers["noisy", "flash"], numbers["noisy", "random"], numbers["equal", "flash"]) == (6, 4, 0)
