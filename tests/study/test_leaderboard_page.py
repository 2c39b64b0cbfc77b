"""The files of a leaderboard, from made-up results of two studies."""

import csv
import re
from pathlib import Path

import pytest

from config_options import ROOT
from fedcohort.errors import OptionError
from fedcohort.study import leaderboard, leaderboard_page
from study.small_study import make_results, write_study

LATE_MEANS = {
    "equal": {
        "random": [0.80, 0.81, 0.82],
        "flash": [0.82, 0.84, 0.83],
        "powd": [0.79, 0.80, 0.78],
        "oracle_clean": [0.9, 0.9, 0.9],
    },
    "noisy": {
        "random": [0.80, 0.80, 0.80],
        "flash": [0.70, 0.90, 0.70],
        "powd": [0.79, 0.79, 0.79],
        "mine": [0.95, 0.95],
    },
}
METHODS = {"methods": ["flash", "powd"], "oracles": ["oracle_clean"]}

LEADERBOARD_YAML = """title: Who
question: Where?
of: {first: digits, second: more digits}
"""
WITHOUT_POWD = {
    "equal": LATE_MEANS["equal"],
    "noisy": {name: values for name, values in LATE_MEANS["noisy"].items() if name != "mine"},
}


def studies(folder: Path, text: str = LEADERBOARD_YAML, **changes: object) -> Path:
    """Write two studies with results and a leaderboard, and return the leaderboard's folder."""
    first, second = write_study(folder / "first", **METHODS), write_study(folder / "second", **{**METHODS, **changes})
    make_results(first, LATE_MEANS).save_files()
    make_results(second, WITHOUT_POWD).save_files()
    (folder / "board").mkdir()
    (folder / "board" / "study.yaml").write_text(text)
    return folder / "board"


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    """The folder of a leaderboard that was written, and the files."""
    folder = studies(tmp_path_factory.mktemp("studies"))
    return folder, leaderboard_page.write_leaderboard_page(leaderboard.load_leaderboard(folder))


def test_the_page_ranks_over_all_settings(board: tuple[Path, list[Path]]) -> None:
    folder, files = board
    text = (folder / "README.md").read_text()
    assert "Ranked are 3 selectors in 4 settings, on 3 seeds in each. **Over these 4 settings, " in text
    settings = "digits: equal; digits: noisy; more digits: equal; more digits: noisy"
    assert f"**No method is significantly better than random** (Holm within the setting) in: {settings}." in text
    # `equal`: flash, random, powd; `noisy`, by means .7667, .80, .79: random, powd, flash
    with (folder / "tables" / "overall.csv").open() as file:
        assert [(row["method"], row["mean rank [95 %]"]) for row in csv.DictReader(file)][:2] == [
            ("1. random", "1.5"),
            ("2. flash", "2"),
        ]
    assert "A difference of 1 point needs " in text
    assert "No method was tuned" in text
    assert {path.name for path in files} >= {"README.md", "report.html", "ranks.png", "overall.tex", "numbers.csv"}


def test_a_users_own_method_is_ranked_on_its_seeds(board: tuple[Path, list[Path]]) -> None:
    folder, _ = board
    with (folder / "tables" / "others.csv").open() as file:
        (line,) = csv.DictReader(file)
    assert [line[name] for name in ("method", "place", "settings", "seeds")] == ["mine", "1 of 4", "1", "2"]
    assert "4. mine" not in (folder / "README.md").read_text()


def test_wins_are_counted_in_the_ranked_settings(tmp_path: Path) -> None:
    """A setting without powd's runs has no ranks: it must not count, and the page must name it."""
    folder = studies(tmp_path)
    late_means = {"random": [0.80, 0.81, 0.82], "flash": [0.90, 0.912, 0.92]}
    make_results(write_study(tmp_path / "second", **METHODS), {**WITHOUT_POWD, "noisy": late_means}).save_files()
    leaderboard_page.write_leaderboard_page(leaderboard.load_leaderboard(folder))
    text = (folder / "README.md").read_text()
    assert "with Holm within each setting, in 1)" in text
    with (folder / "tables" / "overall.csv").open() as file:
        rows = {row["method"].split()[1]: row for row in csv.DictReader(file)}
    assert rows["flash"]["better in"] == "0"
    assert "- No ranks, no run of powd: more digits: noisy\n" in text


def test_each_study_has_a_column_and_incomplete_methods_a_line(tmp_path: Path) -> None:
    """oort has results in one setting of four: after flash's .83 and random's .81, before powd's .79."""
    folder = studies(tmp_path)
    rows = {**METHODS, "methods": ["flash", "powd", "oort"]}
    make_results(
        write_study(tmp_path / "second", **rows),
        {**WITHOUT_POWD, "equal": LATE_MEANS["equal"] | {"oort": [0.8, 0.8, 0.8]}},
    ).save_files()
    leaderboard_page.write_leaderboard_page(leaderboard.load_leaderboard(folder))
    with (folder / "tables" / "overall.csv").open() as file:
        rows_by_method = {row["method"]: row for row in csv.DictReader(file)}
    assert [rows_by_method["2. flash"][name] for name in ("rank: digits (2)", "rank: more digits (2)")] == ["2", "2"]
    assert rows_by_method["1. random"]["rank: digits (2)"] == "1.5"
    with (folder / "tables" / "others.csv").open() as file:
        (line,) = (row for row in csv.DictReader(file) if row["method"] == "oort")
    assert (line["method"], line["place"], line["settings"]) == ("oort", "3 of 4", "1")
    assert line["worst tenth (worst setting)"] == "-1.0 (more digits: equal)"
    assert "- No ranks" not in (folder / "README.md").read_text()


def test_a_federation_that_two_studies_have_is_ranked_once(tmp_path: Path) -> None:
    """It would have weighed twice, in the ranks and in what is won."""
    folder = studies(tmp_path)
    for name in ("first", "second"):
        results = make_results(write_study(tmp_path / name, **METHODS), WITHOUT_POWD)
        for (cell, row, _), facts in results.rows.items():
            facts["config_hash"] = f"{cell}/{row}" if cell == "equal" else f"{name}/{cell}/{row}"
        results.save_files()
    entries = leaderboard.load_leaderboard(folder)
    assert entries.duplicate_settings == {"second/equal": "first/equal"}
    assert list(entries.study.settings) == list(entries.study_names) == ["first/equal", "first/noisy", "second/noisy"]
    leaderboard_page.write_leaderboard_page(entries)
    text = (folder / "README.md").read_text()
    assert "Ranked are 3 selectors in 3 settings, on 3 seeds in each." in text
    assert "- Settings of second left out, since first has the same: equal\n" in text


def test_equal_methods_share_a_rank(tmp_path: Path) -> None:
    """Sums of ranks: random 2 + 1 + 2 + 1.5, flash 1 + 3 + 1 + 1.5."""
    folder = studies(tmp_path)
    late_means = {"random": [0.8, 0.8, 0.8], "flash": [0.8, 0.8, 0.8], "powd": [0.7, 0.7, 0.7]}
    make_results(
        write_study(tmp_path / "second", **METHODS), {"equal": LATE_MEANS["equal"], "noisy": late_means}
    ).save_files()
    leaderboard_page.write_leaderboard_page(leaderboard.load_leaderboard(folder))
    with (folder / "tables" / "overall.csv").open() as file:
        assert [row["method"] for row in csv.DictReader(file)] == ["1. random", "1. flash", "3. powd"]


def test_the_page_says_how_long_its_runs_took(tmp_path: Path) -> None:
    """Some forty runs of 3 s, and one of an hour."""
    folder = studies(tmp_path)
    entries = leaderboard.load_leaderboard(folder)
    entries.results.rows["first/equal", "random", 0]["wall_s"] = 3600.0
    leaderboard_page.write_leaderboard_page(entries)
    text = (folder / "README.md").read_text()
    assert ", 1.0 hours of one process, of commit c0ffee" in text
    assert "second (21)" in text
    source = entries.results.rows["first/equal", "random", 0]  # an oracle whose runs are those of the other setting
    entries.results.rows["first/noisy", "bound:clean", 0] = {**source, "cell": "first/noisy", "selector": "bound:clean"}
    leaderboard_page.write_leaderboard_page(entries)
    assert (folder / "README.md").read_text().split("## Origin of the numbers")[1] == text.split(
        "## Origin of the numbers"
    )[1]


def test_a_study_without_runs_is_missing(tmp_path: Path) -> None:
    folder = studies(tmp_path, LEADERBOARD_YAML.replace("second: more digits", "second: more digits, third: none yet"))
    write_study(tmp_path / "third", **METHODS)
    leaderboard_page.write_leaderboard_page(leaderboard.load_leaderboard(folder))
    text = (folder / "README.md").read_text()
    assert "- 2 settings of third without runs: `fedcohort study run third`" in text
    assert not (folder / "tables" / "differences_third.csv").exists()
    assert "Ranked are 3 selectors in 4 settings, on 3 seeds in each." in text


def test_the_html_page_needs_no_other_file(board: tuple[Path, list[Path]]) -> None:
    folder, _ = board
    text = (folder / "report.html").read_text()
    assert not re.search(r"https?://|url\(|@import|<script|<link", text)
    assert "A difference of 1 point needs " in text


def test_a_leaderboard_without_results_is_reported(tmp_path: Path) -> None:
    write_study(tmp_path / "first")
    (tmp_path / "board").mkdir()
    (tmp_path / "board" / "study.yaml").write_text("title: t\nquestion: q\nof: {first: digits}\n")
    leaderboard_page.write_leaderboard_page(leaderboard.load_leaderboard(tmp_path / "board"))
    assert "There is nothing to rank yet" in (tmp_path / "board" / "README.md").read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: t\nquestion: q\nof: {}\n", r"board/study\.yaml: of must be one study or more"),
        ("title: t\nof: {first: digits}\n", r"board/study\.yaml: question is missing"),
        ("title: t\nquestion: q\nof: [first]\n", r"board/study\.yaml: of must be options by name"),
        ("title: t\nquestion: q\nof: {first: digits}\nseeds: [1]\n", "there is no option 'seeds'"),
        ("title: t\nquestion: q\nof: {third: digits}\n", "has no study 'third': type one of board, first, second"),
        (
            "title: t\nquestion: q\nof: {first: a}\nverdict: {alpha: 2}\n",
            r"verdict\.alpha must be a number in \(0, 1\)",
        ),
    ],
)
def test_errors_in_the_definition_are_reported(tmp_path: Path, text: str, message: str) -> None:
    folder = studies(tmp_path, text)
    assert leaderboard.is_leaderboard(folder)
    with pytest.raises(OptionError, match=message):
        leaderboard.load_leaderboard(folder)


def test_studies_that_cannot_be_compared_are_rejected(tmp_path: Path) -> None:
    folder = studies(tmp_path, baseline="round_robin", methods=["flash"], oracles=[])
    with pytest.raises(OptionError, match=r"of\.second must be a study with baseline=random, as first is, got 'base"):
        leaderboard.load_leaderboard(folder)
    with pytest.raises(OptionError, match=r"of\.second must be a study with horizon=None, as first is"):
        leaderboard.load_leaderboard(studies(tmp_path / "horizon", horizon=2))


def test_variants_of_all_studies_are_corrected_together(tmp_path: Path) -> None:
    folder = studies(tmp_path)
    for name, rows in (("first", "[flash, powd]"), ("second", "[powd, oort]")):
        path = tmp_path / name / "study.yaml"
        path.write_text(path.read_text().replace("methods:", "methods:\n- oort") + f"variants: {{tries: {rows}}}\n")
    entries = leaderboard.load_leaderboard(folder)
    assert dict(entries.study.variants) == {"tries": ["flash", "powd", "oort"]}
    leaderboard_page.write_leaderboard_page(entries)
    assert "- tries: flash, powd, oort are variants of one idea." in (folder / "README.md").read_text()


def test_numbers_name_the_metric_of_their_own_study(tmp_path: Path) -> None:
    """Each row names the metric of its study, not "test/acc or test/acc_worst_group"."""
    folder = studies(tmp_path)
    second = write_study(tmp_path / "second", metric="test/acc_worst_group", **METHODS)
    make_results(second, LATE_MEANS).save_files()
    leaderboard_page.write_leaderboard_page(leaderboard.load_leaderboard(folder))
    with (folder / "tables" / "numbers.csv").open() as file:
        metrics = {(row["cell"].split("/")[0], row["metric"]) for row in csv.DictReader(file)}
    assert {metric for _, metric in metrics} == {"test/acc", "test/acc_worst_group"}
    assert len(metrics) == 2


def test_the_committed_leaderboard_has_the_numbers_of_its_studies() -> None:
    """Its page was not written again when the definition of a run's result changed."""

    def read_rows(name: str) -> dict[str, dict[str, str]]:
        with (ROOT / "studies" / name / "tables" / "numbers.csv").open() as file:
            return {f"{row['cell']} {row['selector']}": row for row in csv.DictReader(file)}

    rows, names = read_rows("leaderboard"), ("n", "late_mean", "diff", "holm_p", "rounds_to_target")
    for study in sorted({key.split("/")[0] for key in rows}):
        results = read_rows(study)
        pairs = [(rows[f"{study}/{key}"], row) for key, row in results.items() if f"{study}/{key}" in rows]
        assert pairs
        for row, study_row in pairs:
            assert {name: row[name] for name in names} == {name: study_row[name] for name in names}
