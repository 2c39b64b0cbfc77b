"""The files of a report, from made-up results: what they say, and that they hold all they need."""

import csv
import math
import re
from pathlib import Path

import pytest

from fedcohort.study import report
from fedcohort.study.results import load
from study.test_judge import LATE, ROWS
from study.tiny import made_up, write


def test_the_page_opens_with_the_answer(tmp_path: Path) -> None:
    study = write(tmp_path, **ROWS)
    files = report.write(study, made_up(study, LATE))
    text = (tmp_path / "README.md").read_text()
    opening = text[: text.index("`fedcohort study report ")]
    assert (
        "**A method is significantly better than random in 1 of 2 regimes** after one Holm correction over all 4 tests "
        "(1 after Holm over the methods of each regime). "
        "In 1 a yardstick beats it, and no method does" in opening
    )
    assert (
        "- **equal**: there are +10.0 [+10.0, +10.0] points to win (oracle_clean); no method is shown to beat"
        in opening
    )
    assert "won by flash (+10.0)" in opening
    assert "were no method different, up to 0.1 of the 2 regimes would have a mark by chance" in text
    assert "The greedy oracle is myopic and no upper bound" in text
    assert "| flash | 83.0 [80.5, 85.5] (n=3) | +2.0 [-0.5, +4.5] | 0.148 | 20 % [-5, 45] | 1 |" in text
    assert "- all of 2 seeds in noisy: full, oracle_diverse\n" in text
    assert "- all of 2 seeds in each of its regimes: bound clean\n" in text
    assert {path.name for path in files} >= {"README.md", "report.html", "map.png", "ranks.png", "numbers.csv"}
    assert all(path.stat().st_size for path in files)


def test_a_diverged_baseline_is_named_where_there_is_no_gap(tmp_path: Path) -> None:
    """It was said that no yardstick had been run."""
    study = write(tmp_path, **ROWS)
    late = {"random": [0.8, math.nan], "oracle_clean": [0.9, 0.91], "flash": [0.85, 0.86]}
    report.write(study, made_up(study, {"equal": late}))
    assert "equal: not known, as random diverged on 1 of 2 seeds" in (tmp_path / "README.md").read_text()


def test_a_yardstick_that_is_the_baseline_wins_nothing(tmp_path: Path) -> None:
    """Equal on every seed, its difference has no interval, and the seeds were said not to settle it."""
    study = write(tmp_path, **ROWS)
    same = [0.80, 0.82, 0.84]
    report.write(study, made_up(study, {"equal": {"random": same, "oracle_clean": same, "flash": same}}))
    assert "equal: the yardsticks win nothing here" in (tmp_path / "README.md").read_text()


def test_tables_of_an_earlier_page_go_and_other_files_stay(tmp_path: Path) -> None:
    study = write(tmp_path, **ROWS)
    report.write(study, made_up(study, LATE))
    mine = tmp_path / "tables" / "mine.csv"
    mine.write_text("a,b\n")
    gone = tmp_path / "tables" / "cell_noisy.csv"
    assert gone.exists()
    report.write(study, made_up(study, {"equal": LATE["equal"]}))
    assert not gone.exists()
    assert not gone.with_suffix(".tex").exists()
    assert mine.exists()
    assert (tmp_path / "tables" / "cell_equal.csv").exists()


def test_a_studys_own_notes_stand_on_its_page(tmp_path: Path) -> None:
    study = write(tmp_path, **ROWS, notes=["flash is blind here"])
    report.write(study, made_up(study, LATE))
    assert "- flash is blind here\n" in (tmp_path / "README.md").read_text()


def test_a_run_that_is_two_places_result_is_one_run(tmp_path: Path) -> None:
    """A bound that is another regime's run has its row, seconds and all: they counted as often as there are places."""
    study = write(tmp_path, **ROWS)
    found = made_up(study, {"equal": {"random": [0.8, 0.8], "flash": [0.9, 0.9]}, "noisy": {"random": [0.7, 0.7]}})
    for facts in found.rows.values():
        facts["wall_s"] = 1800.0
    for seed in (0, 1):
        source = ("equal", "random", seed)
        found.put({**found.rows[source], "cell": "noisy", "selector": "bound:clean"}, found.curves[source])
    report.write(study, found)
    assert "- 6 runs, 3.0 hours of one process; of commit c0ffee (6).\n" in (tmp_path / "README.md").read_text()
    # the same config once more, at another time, is a run of its own
    found.rows["noisy", "bound:clean", 0]["when"] = "later"
    report.write(study, found)
    assert "- 7 runs, 3.5 hours of one process; of commit c0ffee (7).\n" in (tmp_path / "README.md").read_text()


def test_it_is_said_where_the_yardsticks_win_nothing(tmp_path: Path) -> None:
    study = write(tmp_path, **{**ROWS, "beside": ["full", "worst"]})
    flat = {"random": [0.8, 0.8, 0.8], "flash": [0.8, 0.79, 0.8], "oracle_clean": [0.801, 0.8, 0.8]}
    rest = {"full": [0.85, 0.86, 0.87], "worst": [0.7, 0.71, 0.72], "bound:clean": [0.9, 0.92, 0.88]}
    report.write(study, made_up(study, {"equal": flat, "noisy": {**flat, **rest}}))
    text = (tmp_path / "README.md").read_text()
    # mean .0333, deviation .0577 of a point, t_.975,2 = 4.303: +- .143; of `full` 6 +- 1 4.303 / sqrt(3)
    said = "the yardsticks win nothing here, or less than 1 point (+0.0 [-0.1, +0.2], oracle_clean)"
    assert f"- equal: {said}.\n" in text
    # what they win is no limit where others are better
    assert f"- noisy: {said}; bound clean is +10.0 [+5.0, +15.0]; full is +6.0 [+3.5, +8.5]" in text


def test_a_diverged_seed_is_told_and_no_dash(tmp_path: Path) -> None:
    """Its row had no difference, no test and no place among those that are worse, as if it hadn't been run."""
    study = write(tmp_path, **ROWS)
    of = {"random": [0.8, 0.81, 0.82], "flash": [0.6, 0.62, 0.61], "powd": [0.8, math.nan, math.inf]}
    report.write(study, made_up(study, {"equal": of, "noisy": {**of, "random": [0.8, math.nan, 0.82]}}))
    text = (tmp_path / "README.md").read_text()
    assert "worse than random: flash (-20.0), powd (diverged on 2 of 3)" in text
    assert "| powd | – (n=3, 2 diverged) | diverged on 2 |" in text
    assert "| powd | diverged | diverged |" in text
    # where random diverged, nothing can be said of flash
    assert "| random | – (n=3, 1 diverged) | – |" in text
    assert "| flash | 61.0 [58.5, 63.5] (n=3) | – |" in text
    assert "| flash | -20.0▼ | – |" in text
    # from the one spread that is known, flash's in `equal`: .01, as large as the difference (`results/test_power.py`)
    assert "| seeds that 1 needs | 10 | – |" in text


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ({"flash": [0.9, 0.91, 0.92]}, "**A method beats random**."),
        (
            {"flash": [0.9, 0.91, 0.92], "powd": [0.7, 0.9, 0.8]},
            "**A method beats random**, also after Holm over all 2 tests.",
        ),
        (
            {"oracle_clean": [0.9, 0.91, 0.92]},
            "**No method is shown to beat random.** A yardstick beats it: there is something to win.",
        ),
        (
            {"oracle_clean": [0.8, 0.801, 0.8]},
            "**No method is shown to beat random.** The yardsticks win nothing, or less than 1 point.",
        ),
        (
            {"oracle_clean": [0.7, 0.9, 0.8]},
            "**No method is shown to beat random.** The seeds don't settle it.",
        ),
    ],
)
def test_a_single_regime_is_not_counted(tmp_path: Path, rows: dict[str, list[float]], said: str) -> None:
    study = write(tmp_path, **ROWS)
    report.write(study, made_up(study, {"equal": {"random": [0.8, 0.8, 0.8], "flash": [0.8, 0.79, 0.8], **rows}}))
    assert f"\n\n{said}\n\n- " in (tmp_path / "README.md").read_text()


def test_what_has_no_unit_is_told_in_hundredths(tmp_path: Path) -> None:
    """Jain's index: .3 to .5 would be one digit."""
    study = write(
        tmp_path, **{**ROWS, "metric": "clients/jain", "common": ["eval.clients_every=1"], "win": {"worth": 0.01}}
    )
    of = {"random": [0.3, 0.4, 0.5], "flash": [0.35, 0.46, 0.54], "oracle_clean": [0.4, 0.52, 0.58]}
    report.write(study, made_up(study, {"equal": of}))
    text = (tmp_path / "README.md").read_text()
    assert "won by flash (+5.0, 50 % [" in text
    assert "there are +10.0 [+5.0, +15.0] hundredths to win (oracle_clean)" in text
    assert "seeds would show 1 hundredth; these 3 show" in text


def test_a_bound_says_what_is_lost_where_no_yardstick_was_run(tmp_path: Path) -> None:
    """.9, .92, .88 over .8 each: 10 points, deviation 2, times 4.303 / sqrt(3): 4.97."""
    study = write(tmp_path, **ROWS)
    of = {"random": [0.8, 0.8, 0.8], "flash": [0.8, 0.79, 0.8], "bound:clean": [0.9, 0.92, 0.88]}
    report.write(study, made_up(study, {"noisy": of}))
    text = (tmp_path / "README.md").read_text()
    assert (
        "- noisy: not known, as no yardstick was run beside random; its bound, clean, is +10.0 [+5.0, +15.0]." in text
    )


def test_there_may_be_something_to_win_where_one_yardstick_can_not_tell(tmp_path: Path) -> None:
    """The one with the largest mean is surely small; the other's interval reaches far beyond a point."""
    study = write(tmp_path, **ROWS)
    of = {"random": [0.8] * 3, "oracle_clean": [0.801, 0.802, 0.801], "oracle_diverse": [0.84, 0.77, 0.79]}
    report.write(study, made_up(study, {"equal": of}))
    assert "- equal: not settled by 3 seeds (+0.1 [" in (tmp_path / "README.md").read_text()


def test_nothing_is_said_of_a_baseline_that_was_not_run(tmp_path: Path) -> None:
    study = write(tmp_path, **{**ROWS, "selectors": ["flash", "powd", "oort"]})
    of = {"flash": [0.8, 0.8, 0.8], "powd": [0.7, 0.7, 0.7], "oort": [0.6, 0.6, 0.6]}
    report.write(study, made_up(study, {"equal": of, "noisy": of}))
    assert "to be beaten" not in (tmp_path / "README.md").read_text()


def test_the_html_asks_nobody(tmp_path: Path) -> None:
    study = write(tmp_path, title="a < b & c", **ROWS)
    report.write(study, made_up(study, LATE))
    text = (tmp_path / "report.html").read_text()
    assert "<h1>a &lt; b &amp; c</h1>" in text
    sources = re.findall(r'(?:src|href)="?([^">]{0,30})', text)
    assert len(sources) == 2
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert not re.search(r"https?://|url\(|@import|<script|<link", text)


def test_tables_come_as_csv_and_latex(tmp_path: Path) -> None:
    study = write(tmp_path, **ROWS)
    report.write(study, made_up(study, LATE))
    with (tmp_path / "tables" / "numbers.csv").open() as file:
        rows = {(row["cell"], row["selector"]): row for row in csv.DictReader(file)}
    flash = rows["equal", "flash"]
    assert float(flash["diff"]) == pytest.approx(0.02)
    assert float(flash["gap_closed"]) == pytest.approx(0.2)
    assert float(flash["rank"]) == 1.0
    assert flash["sign"] == "0"
    assert rows["equal", "random"]["diff"] == ""
    assert float(flash["last"]) == pytest.approx(0.83)
    costs = ("bytes", "probe_bytes", "client_flops", "server_flops")
    assert [flash[name] for name in costs] == ["1000000.0", "500.0", "2.0", "7.0"]
    target = ("rounds_to_target", "virtual_s_to_target", "bytes_to_target", "reached")
    assert [flash[name] for name in target] == ["1.0", "60.0", "1000000.0", "3"]
    assert [rows["noisy", "flash"][name] for name in target] == [""] * 4  # it has no target
    assert rows["noisy", "flash"]["gap_closed"] == ""
    latex = (tmp_path / "tables" / "cell_equal.tex").read_text()
    assert latex.count("\\\\\n") == 7
    assert r"oracle\_clean \ddag{}" in latex
    assert r"20 \% [-5, 45]" in latex


def test_each_table_says_what_its_seeds_can_show(tmp_path: Path) -> None:
    study = write(tmp_path, **ROWS)
    report.write(study, made_up(study, LATE))
    text = (tmp_path / "README.md").read_text()
    # of `equal` 17, as in test_judge; of `noisy` sqrt(3) / 300 (flash) and .01 (powd): the median is (.01 + 1e-4) / 2
    power = "seeds would show 1 point; these 3 show "
    assert text.count(" in the median regime (5 to 17 seeds for 1 point, equal the most).\n") == 3
    assert f"Some 17 {power}" in text
    assert (tmp_path / "report.html").read_text().count(power) == 5
    assert power in (tmp_path / "tables" / "cell_noisy.tex").read_text()
    assert "| 1 rounds, 60 s, 1 MB |" in text


def test_runs_that_were_done_before_the_clock_are_named(tmp_path: Path) -> None:
    """Made-up runs take 60 s: of a clock of 100 s they use the first, of one of 60 all, and `equal` has none."""
    study = write(tmp_path, **ROWS)
    found = made_up(study, LATE)
    report.write(study, found)
    early = "had all of their rounds before the clock ended"
    assert early not in (tmp_path / "README.md").read_text()
    for (cell, row, seed), facts in found.rows.items():
        facts["words"] = f"until.virtual_s={100 if row == 'flash' and seed < 2 else 60}" if cell == "noisy" else ""
    report.write(study, found)
    text = (tmp_path / "README.md").read_text()
    assert "60 s, rounds ended 2 of 3" in text
    assert text.count("rounds ended") == 1
    with (tmp_path / "tables" / "numbers.csv").open() as file:
        assert [(row["cell"], row["selector"]) for row in csv.DictReader(file) if row["ended_by_rounds"] == "2"] == [
            ("noisy", "flash")
        ]
    assert f"- Runs that {early}, so that `rounds` and not the clock stopped them; " in text
    assert "might have made it better: noisy: flash (2 of 3).\n" in text


def test_what_rewards_follow_is_told(tmp_path: Path) -> None:
    study = write(tmp_path, **ROWS)
    found = made_up(study, LATE)
    report.write(study, found)
    assert "scores and rewards follow" not in (tmp_path / "README.md").read_text()
    for seed, (score, reward) in enumerate(((0.1, -0.5), (0.3, -0.3))):
        facts = found.rows["equal", "flash", seed]
        facts["follows"] = f'{{"score_noise": {score}, "reward_noise": {reward}, "explore_noise": 0.9}}'
    found.rows["equal", "powd", 0]["follows"] = '{"score_noise": 0.7}'  # it is paid nothing
    found.rows["noisy", "flash", 0]["follows"] = '{"reward_seconds": 0.25}'
    report.write(study, found)
    text = (tmp_path / "README.md").read_text()
    assert "| regime | selector | score: wrong labels | reward: wrong labels | reward: seconds |" in text
    assert "| equal | flash | +0.20 | -0.40 | – |" in text
    assert "| noisy | flash | – | – | +0.25 |" in text
    assert "| equal | powd | +0" not in text
    found.save()
    assert load(study).rows["noisy", "flash", 0]["follows"] == '{"reward_seconds": 0.25}'


def test_a_report_of_nothing_says_so(tmp_path: Path) -> None:
    study = write(tmp_path)
    report.write(study, load(study))
    text = (tmp_path / "README.md").read_text()
    assert "Nothing has been run yet: `fedcohort study run" in text
    assert not (tmp_path / "map.png").exists()
