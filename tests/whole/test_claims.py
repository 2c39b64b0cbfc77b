"""README's numbers on client selection and on speed are those of the committed results."""

import math
import re
from functools import cache

import numpy as np
import pytest

from whole import claims
from whole.claims import ROOT

README = (ROOT / "README.md").read_text()
LEADERBOARD = (ROOT / "studies" / "leaderboard" / "README.md").read_text()
SECTION = README.partition("## When does client selection pay?")[2].partition("\n## ")[0]
FLAT = " ".join(SECTION.split())
# what the studies' definitions say, and which isn't computed
GIVEN: tuple[str, ...] = (
    "95 % intervals",
    "10 paired seeds",
    "10 of 50 clients",
    "learning rate of 0.1,",
    "60 rounds",
    "rounds 51 to 60",
    "one Holm",
)
GIVEN += ("50 rounds and the mean of the last three evaluations", "9 of 24 clients train per round, for 25 rounds")
GIVEN += ("rate of 0.01",)
TESTS, SETTINGS, BETTER, WORSE = claims.counts()
# the leaderboard's page: families of settings, round robin's mean difference over them, its p over the seeds
FAMILIES = (
    re.findall(r"round_robin \S+ \[[^]]+\] \(t-test over (\d+) families", LEADERBOARD)[0],
    *re.findall(r"^\| 1\. round_robin \| [^|]+ \| [^|]+ \| (\+[^|]+?) \| ", LEADERBOARD, re.MULTILINE),
    *re.findall(r"^\| 1\. round_robin \| [^|]+ \| ([\d.]+) \| ", LEADERBOARD, re.MULTILINE),
)
OF_PAPERS = claims.counts(of_papers=True)
OVER = {name: claims.over_settings(name) for name in ("cohorts_digits", "regimes_digits")}


@cache
def robust() -> dict[str, dict[str, list[float]]]:
    """Return of each setting of studies/robust_loss three differences over common seeds, in points.

    loss: random selection with FLASH's loss, minus with cross-entropy. selection: FLASH, minus random selection. both:
    FLASH with its loss, minus random selection with that loss.
    """
    found = {}
    rows = ("random", "random_robust", "flash", "flash_robust")
    for cell in claims.study("robust_loss")["cells"]:
        late = claims.runs("robust_loss", cell)
        common = sorted(set.intersection(*(set(late[row]) for row in rows)))
        pairs = {"loss": rows[1::-1], "selection": rows[2::-2], "both": rows[3:0:-2]}
        found[cell] = {name: [late[a][s] - late[b][s] for s in common] for name, (a, b) in pairs.items()}
    return found


def tell_loss() -> str:
    """What studies/robust_loss says, in a sentence for each comparison; Holm's correction is over all of them."""
    known = [(cell, kind, d) for cell, of in robust().items() for kind, d in of.items()]
    ps = claims.holm([claims.p_of(d) for _, _, d in known])
    sure = {(cell, kind): np.sign(np.mean(d)) for (cell, kind, d), p in zip(known, ps, strict=True) if p < claims.ALPHA}
    count = {
        (kind, side): sum(sign == side for (_, each), sign in sure.items() if each == kind)
        for kind in ("loss", "selection", "both")
        for side in (1, -1)
    }
    gains = [float(np.mean(of["loss"])) for of in robust().values()]
    seeds = sorted({len(of["loss"]) for of in robust().values()})
    span = f"{seeds[0]} to {seeds[-1]} seeds" if len(seeds) > 1 else f"{seeds[0]} seeds"
    noisy = {kind: claims.spell(d) for kind, d in robust()["bimodal70"].items()}
    return (
        f"In {len(gains)} settings with label noise (digits, {span}) random selection gains {min(gains):.1f} to "
        f"{max(gains):.1f} points with FLASH's loss instead of cross-entropy, significantly in {count['loss', 1]} "
        f"after Holm over {len(known)} comparisons. FLASH's selection with cross-entropy is significantly better than "
        f"random selection in {count['selection', 1]} of them. With FLASH's loss in both, it is significantly better "
        f"in {count['both', 1]} and worse in {count['both', -1]}. "
        f"With 70 % noisy clients the loss gains {noisy['loss']}, the selection {noisy['selection']}, and the "
        f"selection on top of the loss {noisy['both']}."
    )


def said() -> list[str]:
    """The parts of the section that hold computed numbers."""
    skew, other = OVER["cohorts_digits"], OVER["regimes_digits"]
    lines = [tell_loss(), *(claims.line(*setting) for setting in claims.SETTINGS)]
    lines += [f"largest mean of up to {max(len(claims.published(*setting[1:])) for setting in claims.SETTINGS)}"]
    lines += [f"all {TESTS} comparisons of methods with random selection in the {SETTINGS} settings of four studies"]
    lines += [f"**{BETTER} of the {SETTINGS} settings**", f"significantly worse in {WORSE}"]
    lines += [f"with default options these are {OF_PAPERS[2]} and {OF_PAPERS[3]} settings"]
    lines += [f"{skew[0]} settings with label skew", f"{len(skew[3])} of {skew[2]} methods are better"]
    lines += [
        f"Fed-CBS by the most ({skew[3][0][1]})",
        f"over the {skew[1]} seeds",
        f"{other[0]} settings with up to three kinds",
    ]
    lines += [f"one of {other[2]} methods is: FedPNS with tuned options, {other[3][0][1]}"]
    lines += [f"in {SETTINGS} settings some method is significantly better in {BETTER}", f"worse in {WORSE}"]
    lines += [f"show one, round robin: {FAMILIES[1]} over {FAMILIES[0]} families", f"(p = {FAMILIES[2]})"]
    return lines


@pytest.mark.parametrize("text", said())
def test_each_number_in_the_readme_follows_from_the_results(text: str) -> None:
    assert text in FLAT


def test_the_readme_section_has_no_unchecked_number() -> None:
    """A number that is added to the section needs a line above."""
    rest = re.sub(r"\]\([^)]*\)", "]", FLAT)
    for text in sorted((*said(), *GIVEN), key=len, reverse=True):
        rest = rest.replace(re.sub(r"\]\([^)]*\)", "]", text), "")
    assert re.findall(r"\S*\d\S*", rest) == []


@pytest.mark.parametrize("setting", claims.JUDGED, ids=lambda setting: f"{setting[1]}-{setting[2]}")
def test_each_row_of_the_docs_table_matches_its_study(setting: tuple[str, str, str]) -> None:
    assert claims.judged(*setting) in (ROOT / "docs" / "where_selection_pays.md").read_text().splitlines()


def test_readme_and_docs_agree_on_the_loss() -> None:
    assert tell_loss() in " ".join((ROOT / "docs" / "where_selection_pays.md").read_text().split())


def test_the_method_names_are_those_of_the_results() -> None:
    assert OVER["cohorts_digits"][3][0][0] == "fedcbs"
    assert [row for row, _ in OVER["regimes_digits"][3]] == ["fedpns_tuned"]


def test_the_section_describes_the_studies_correctly() -> None:
    for name in ("regimes_digits", "cohorts_digits"):
        found = claims.study(name)
        assert {"dataset=digits", "model=mlp", "clients=50", "rounds=60", "client.epochs=2"} <= set(found["common"])
        assert ("late" in found, len(found["seeds"])) == (False, 10), "the last sixth of 60 rounds"
    assert "late" not in claims.study("regimes_fashion"), "three of ten evaluations, the least number"
    assert "\nlr: 0.1 " in (ROOT / "configs/client/sgd.yaml").read_text()


def test_fedbalancers_speed_up_is_that_of_its_page() -> None:
    page = (ROOT / "docs" / "paper_results.md").read_text()
    rows = re.findall(r"^\| \d+ \|[\d., |-]+\|$", page, re.MULTILINE)  # minutes to the target; one row for each seed
    minutes = [
        [math.inf if cell == "-" else float(cell) for cell in row.split(" | ")[2:]] for row in (r[:-2] for r in rows)
    ]
    assert len(minutes) == 10
    *variants, fedbalancer, released = np.array(minutes).T
    ratio = np.sort(np.min(variants, axis=0) / fedbalancer)
    text = " ".join(page.split())
    assert f"of each seed the median is {ratio[4]:.2f} to {ratio[5]:.2f}" in text
    assert math.isclose(ratio[1], 1.2, abs_tol=0.05), "the second of ten"
    reached, as_released = (int(np.isfinite(times).sum()) for times in (fedbalancer, released))
    assert re.search(rf"\| \*\*[\d.]+, {reached} of 10\*\* \|", page)
    assert re.search(rf"as released \| \| [\d.]+, {as_released} of 10 \|", page)


def test_the_round_time_is_that_of_the_benchmark() -> None:
    page = (ROOT / "benchmarks" / "results.md").read_text()
    rows = re.findall(r"^\| (W\d) \| (fedcohort|bare), (\d) process(?:es)? \| ([\d.]+) ", page, re.MULTILINE)
    time = {(workload, int(count), peer): float(ratio) for workload, peer, count, ratio in rows}
    ratios = [time[w, n, "fedcohort"] / time[w, n, "bare"] for w, n, peer in time if peer == "bare"]
    assert len(ratios) == 12, "six workloads with one and two processes"
    assert f"takes {min(ratios):.2f} to {max(ratios):.2f} of a bare PyTorch loop's time" in " ".join(README.split())
