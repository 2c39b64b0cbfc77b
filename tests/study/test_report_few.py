"""What a report says of few seeds: of rows and pages that have less than others, and of medians of even numbers."""

from pathlib import Path

from fedcohort.study import report
from study.test_judge import LATE, ROWS
from study.tiny import made_up, write


def test_a_row_of_fewer_seeds_says_so(tmp_path: Path) -> None:
    study = write(tmp_path, **ROWS)
    late = {"random": [0.8, 0.81, 0.82], "flash": [0.9], "powd": [0.8, 0.8, 0.8]}
    report.write(study, made_up(study, {"equal": late}))
    text = (tmp_path / "README.md").read_text()
    assert "| flash | +10.0 (n=1) |" in text
    assert "| powd | -1.0 |" in text


def test_two_seeds_have_no_interval(tmp_path: Path) -> None:
    """It reached from 9.7 to 101.1 % accuracy."""
    study = write(tmp_path, **ROWS)
    late = {"random": [0.80, 0.81, 0.82], "flash": [0.4, 0.7]}
    report.write(study, made_up(study, {"equal": late}))
    assert "| flash | 55.0 (n=2) | -25.5 |" in (tmp_path / "README.md").read_text()


def test_what_a_median_of_an_even_number_is(tmp_path: Path) -> None:
    """Two of four met `equal`'s target of .5: half, and the later of the middle two is never."""
    study = write(tmp_path, **ROWS, seeds=[0, 1, 2, 3])
    half = {"random": [0.6, 0.6, 0.4, 0.4], "flash": [0.6, 0.6, 0.6, 0.4]}
    report.write(study, made_up(study, {"equal": half}))
    text = (tmp_path / "README.md").read_text()
    rows = {line.split(" | ")[0]: line for line in text[text.index("### equal") :].splitlines() if " | " in line}
    assert rows["| random"].endswith(" | 2 of 4 |")
    assert rows["| flash"].endswith(" | 1 rounds, 60 s, 1 MB |")
    assert "each separately, of an even number of seeds the geometric middle of the middle two; where half of" in text


def test_one_seed_tells_nothing(tmp_path: Path) -> None:
    study = write(tmp_path, **ROWS)
    one = {cell: {row: values[:1] for row, values in of.items()} for cell, of in LATE.items()}
    report.write(study, made_up(study, one))
    text = (tmp_path / "README.md").read_text()
    assert "**In none of the 2 regimes a method is shown to beat random.** In 2 the seeds don't settle it." in text
    assert "So far 1 of 2 seeds have been run." in text
    assert "equal: not settled by 1 seed (+10.0, oracle_clean)" in text


def test_a_regime_lacks_no_row_that_it_does_not_ask_for(tmp_path: Path) -> None:
    """`powd` isn't asked for among equal clients; where it was run all the same it is in the table."""
    cells = {"equal": {"words": [], "rows": ["flash"]}, "noisy": {"words": ["heterogeneity=noise_bimodal"]}}
    study = write(tmp_path, **(ROWS | {"cells": cells, "seeds": [0, 1, 2], "yardsticks": [], "beside": []}))
    late = {"random": [0.8, 0.81, 0.82], "flash": [0.9, 0.9, 0.9]}
    report.write(study, made_up(study, {"equal": late, "noisy": late}))
    text = (tmp_path / "README.md").read_text()
    assert "- all of 3 seeds in each of its regimes: powd\n" in text
    assert "- Asked for some of the rows alone (`rows` of a regime; others have a dash there): equal.\n" in text
    more = {"equal": late | {"powd": [0.8, 0.76]}, "noisy": late | {"powd": [0.8, 0.76, 0.81]}}
    report.write(study, made_up(study, more))
    text = (tmp_path / "README.md").read_text()
    assert "| powd | -2.5 (n=2) | -2.0 |" in text
    assert "seeds have been run" not in text


def test_rows_of_few_seeds_and_variants_are_told(tmp_path: Path) -> None:
    """`full`, beside, has its one seed: nothing is missing of it. A yardstick of few seeds is named all the same."""
    few, tries = {"oracle_diverse": 3, "full": 1}, {"repairs": ["flash", "powd"]}
    study = write(tmp_path, few=few, variants=tries, **(ROWS | {"seeds": list(range(7))}))
    one = {
        "random": [0.8] * 7,
        "oracle_clean": [0.801, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8],
        "oracle_diverse": [0.86, 0.85, 0.87],
    }
    rest = {"flash": [0.8] * 7, "powd": [0.8] * 7, "full": [0.8]}
    report.write(study, made_up(study, {"equal": {**one, **rest}, "noisy": {**one, **rest, "bound:clean": [0.8] * 7}}))
    text = (tmp_path / "README.md").read_text()
    assert "seeds have been run" not in text
    assert "## Missing" not in text
    # +.05, .06, .07: deviation .01 times 4.303 / sqrt(3)
    assert "- equal: the yardsticks win nothing here, or less than 1 point (+0.0 [" in text
    assert "oracle_clean); oracle_diverse is +6.0 [+3.5, +8.5]" in text
    assert (
        "- repairs are 2 tries of one idea, flash, powd: in a count over regimes their p is corrected by Holm" in text
    )
    assert "- Asked for fewer seeds than the others, the first of them: oracle_diverse (3), full (1)." in text
    less = {"random": [0.8] * 6, "oracle_clean": [0.8] * 7, "full": [0.8]}
    report.write(study, made_up(study, {"equal": less}))
    text = (tmp_path / "README.md").read_text()
    assert "So far 6 to 7 of 7 seeds have been run." in text
    assert "- all of 3 seeds in each of its regimes: oracle_diverse\n" in text
    assert "all of 1 seeds" not in text.split("full")[0]
