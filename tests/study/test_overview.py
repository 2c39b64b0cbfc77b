"""studies/README.md lists the settings of all studies, those with the largest gain of a method first."""

from pathlib import Path

import pytest

from config_options import ROOT
from fedcohort.study import overview, report
from study.small_study import make_results, write_study

SEEDS = {"seeds": [0, 1, 2], "oracles": ["oracle_clean"], "methods": ["round_robin", "ucb_cs"]}
BASE = [0.50, 0.52, 0.54]


def above_base(*points: float) -> list[float]:
    """The baseline's values, so many points higher on each seed."""
    return [base + point / 100 for base, point in zip(BASE, points, strict=True)]


def report_of(folder: Path, late_means: dict[str, dict[str, list[float]]]) -> None:
    study = write_study(
        folder, settings={cell: {"overrides": [], "label": f"the {cell}"} for cell in late_means}, **SEEDS
    )
    report.write_study_report(study, make_results(study, late_means))


@pytest.fixture
def studies(tmp_path: Path) -> Path:
    """In `one` round robin gains 6 points and ucb_cs loses 9, or an oracle gains 5; in `two` it gains 8, or nothing."""
    with_headroom = {
        "random": BASE,
        "round_robin": above_base(6.0, 6.1, 5.9),
        "oracle_clean": above_base(7, 7.1, 6.9),
        "ucb_cs": above_base(-9, -9.1, -8.9),
    }
    unmatched_oracle = {"random": BASE, "round_robin": above_base(1, -1, 0), "oracle_clean": above_base(5, 5.1, 4.9)}
    report_of(tmp_path / "one", {"left": with_headroom, "yard": unmatched_oracle})
    wins = {"random": BASE, "round_robin": above_base(8.0, 8.1, 7.9), "oracle_clean": above_base(9, 9.1, 8.9)}
    flat = {"random": BASE, "round_robin": above_base(0, 0.1, -0.1), "oracle_clean": above_base(0.1, 0.2, 0)}
    open_ = {"random": BASE, "round_robin": above_base(9, -9, 0), "oracle_clean": above_base(19, -9, 0)}
    report_of(tmp_path / "two", {"wins": wins, "flat": flat, "open": open_})
    write_study(tmp_path / "three", title="Not yet")
    (tmp_path / "board").mkdir()
    (tmp_path / "board" / "study.yaml").write_text("title: t\nquestion: q\nof: {one: 1}\n")
    return tmp_path


def test_settings_are_counted_and_sorted_by_their_outcome(studies: Path) -> None:
    text = overview.write_overview_page(studies).read_text()
    assert text == overview.render_page(studies)
    assert "Of 5 settings" in text
    assert (
        "**a method is significantly better than the study's baseline in 2** (paired t-tests, one Holm "
        "correction over all 6 tests" in text
    )
    assert "in 2 with Holm within each setting). In 0 of these 2, no headroom is shown" in text
    assert "In 1, the headroom is above 0 and no method is significantly better. In 1, headroom is neither" in text
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| the")]
    assert [row[0] for row in rows] == ["the wins", "the left", "the yard", "the open", "the flat"]
    assert rows[0][1:4] == ["[two](two/README.md)", "test/acc", "3"]
    assert rows[0][5:7] == ["**round_robin +8.0**", "–"]
    assert rows[1][5:7] == ["**round_robin +6.0**", "**ucb_cs -9.0**"]
    assert rows[1][4].startswith("+7.0 [")
    assert rows[1][4].endswith("] (oracle_clean)")
    assert "- [three](three/study.yaml): Not yet" in text
    assert "board" not in text


def test_an_unreadable_study_does_not_affect_the_others(studies: Path) -> None:
    """A study that is being written must not end the reports of the other studies with its error."""
    (studies / "draft").mkdir()
    (studies / "draft" / "study.yaml").write_text("title: [a, b\nquestion: {")
    assert "- [draft](draft/study.yaml): its study.yaml can't be read" in overview.render_page(studies)


def test_a_federation_in_two_studies_counts_once(tmp_path: Path) -> None:
    """`here` is won in one of the two, and not settled in the other: it counted as won."""
    late_means = {"random": BASE, "round_robin": above_base(6.0, 6.1, 5.9), "oracle_clean": above_base(7, 7.1, 6.9)}
    open_ = {"random": BASE, "round_robin": above_base(9, -9, 0), "oracle_clean": above_base(19, -9, 0)}
    for folder, shared in (("one", late_means), ("two", open_)):
        study = write_study(tmp_path / folder, settings={"here": {"overrides": []}, folder: {"overrides": []}}, **SEEDS)
        results = make_results(study, {"here": shared, folder: late_means})
        for (cell, row, _), facts in results.rows.items():
            facts["config_hash"] = f"{cell}/{row}"
        report.write_study_report(study, results)
    text = overview.render_page(tmp_path)
    assert "Of 4 settings, 3 different ones" in text
    assert "1 setting is in two studies or more. The study with the most seeds counts; among studies with " in text
    assert "**a method is significantly better than the study's baseline in 2**" in text
    assert "In 0 of these 2, " in text
    assert "In 1 of them another study gives a different kind of result" in text
    assert "In 1, headroom is neither shown nor excluded" in text


def test_the_study_with_the_most_seeds_counts(tmp_path: Path) -> None:
    """The study with two more seeds counts. A gain without a better oracle is no share of a headroom."""
    open_ = {"random": BASE, "round_robin": above_base(9, -9, 0), "oracle_clean": above_base(9, -9, 0)}
    late_means_of_five = {"random": [*BASE, 0.56, 0.58], "round_robin": [*above_base(6.0, 6.1, 5.9), 0.62, 0.64]}
    late_means_of_five["oracle_clean"] = [*above_base(9, -9, 0), 0.56, 0.58]
    for folder, late_means in (("one", open_), ("two", late_means_of_five)):
        seeds = list(range(len(late_means["random"])))
        study = write_study(tmp_path / folder, settings={"here": {"overrides": []}}, **{**SEEDS, "seeds": seeds})
        results = make_results(study, {"here": late_means})
        for (cell, row, _), facts in results.rows.items():
            facts["config_hash"] = f"{cell}/{row}"
        report.write_study_report(study, results)
    text = overview.render_page(tmp_path)
    assert "In 1 of them another study gives a different kind of result" in text
    assert "In 1 of these 1, no headroom is shown" in text


def test_the_committed_page_matches_the_tables() -> None:
    assert (ROOT / "studies" / "README.md").read_text() == overview.render_page(ROOT / "studies")


def test_every_study_with_results_is_on_the_overview_page() -> None:
    names = sorted(path.parent.name for path in (ROOT / "studies").glob("*/results.parquet"))
    assert sorted(path.parents[1].name for path in (ROOT / "studies").glob(f"*/{overview.OVERVIEW_FILE}")) == names


def test_a_study_whose_table_an_earlier_version_wrote_is_reported_again(studies: Path) -> None:
    path = studies / "two" / overview.OVERVIEW_FILE
    head, *lines = path.read_text().splitlines()
    path.write_text("\n".join(line.rsplit(",", 1)[0] for line in (head, *lines)) + "\n")
    text = overview.render_page(studies)
    assert "| the wins" not in text
    assert "- [two](two/study.yaml): A tiny study" in text
