"""Tests that README's numbers on client selection and on speed follow from the committed results."""

import re
from functools import cache

import numpy as np

from case_loop import for_all
from whole import (
    claim_settings,
    claims,
    fedbalancer_table,
    test_noise_fashion_claims,
    test_plateau_claims,
    test_plateau_fashion_claims,
)
from whole.claims import ROOT

README = (ROOT / "README.md").read_text()
LEADERBOARD = (ROOT / "studies" / "leaderboard" / "README.md").read_text()
DOCS = " ".join((ROOT / "docs" / "where_selection_pays.md").read_text().split())
SECTION = README.partition("## When does client selection pay?")[2].partition("\n## ")[0]
FLAT = " ".join(SECTION.split())
# Numbers that the studies define; they are not computed.
STATED = (
    "Holm over 35 tests",
    "95 % interval over 5 paired seeds",
    "50 clients, cohorts of 10",
    "120 to 480 rounds",
    "one of five runs",
    "with 70 % noisy clients it did not find the noise",
)
# the leaderboard's page: families of settings, round robin's mean difference over them, its p over the seeds
FAMILIES = (
    re.findall(r"round_robin \S+ \[[^]]+\] \(t-test over (\d+) families", LEADERBOARD)[0],
    *re.findall(r"^\| \d+\. round_robin \| [^|]+ \| [^|]+ \| (\+[^|]+?) \| ", LEADERBOARD, re.MULTILINE),
    *re.findall(r"^\| \d+\. round_robin \| [^|]+ \| ([\d.]+) \| ", LEADERBOARD, re.MULTILINE),
)


@cache
def robust_loss_differences() -> dict[str, dict[str, list[float]]]:
    """Return three differences over common seeds for each setting of studies/robust_loss, in points.

    loss: random selection with FLASH's loss, minus with cross-entropy. selection: FLASH, minus random selection. both:
    FLASH with its loss, minus random selection with that loss.
    """
    differences_by_cell = {}
    rows = ("random", "random_robust", "flash", "flash_robust")
    for cell in claims.read_study("robust_loss")["settings"]:
        runs_by_method = claims.read_runs("robust_loss", cell)
        common = sorted(set.intersection(*(set(runs_by_method[row]) for row in rows)))
        pairs = {"loss": rows[1::-1], "selection": rows[2::-2], "both": rows[3:0:-2]}
        differences_by_cell[cell] = {
            name: [runs_by_method[a][s] - runs_by_method[b][s] for s in common] for name, (a, b) in pairs.items()
        }
    return differences_by_cell


@cache
def describe_robust_loss() -> str:
    """Return what the docs state of studies/robust_loss; Holm's correction is over all of its comparisons."""
    comparisons = [
        (cell, kind, d)
        for cell, differences_by_kind in robust_loss_differences().items()
        for kind, d in differences_by_kind.items()
    ]
    ps = claims.adjust_by_holm([claims.t_test_p(d) for _, _, d in comparisons])
    sure = {
        (cell, kind): np.sign(np.mean(d))
        for (cell, kind, d), p in zip(comparisons, ps, strict=True)
        if p < claims.ALPHA
    }
    count = {
        (kind, side): sum(sign == side for (_, compared_kind), sign in sure.items() if compared_kind == kind)
        for kind in ("loss", "selection", "both")
        for side in (1, -1)
    }
    gains = [float(np.mean(differences_by_kind["loss"])) for differences_by_kind in robust_loss_differences().values()]
    seeds = sorted({len(differences_by_kind["loss"]) for differences_by_kind in robust_loss_differences().values()})
    span = f"{seeds[0]} to {seeds[-1]} seeds" if len(seeds) > 1 else f"{seeds[0]} seeds"
    noisy = {kind: claims.format_interval(d) for kind, d in robust_loss_differences()["bimodal70"].items()}
    gain = f"random selection gains {min(gains):.1f} to {max(gains):.1f} points with"
    return (
        f"In {len(gains)} settings with label noise (digits, {span}) {gain} FLASH's loss instead of cross-entropy, "
        f"significantly in {count['loss', 1]} after Holm over {len(comparisons)} comparisons. "
        "FLASH's selection with cross-entropy is significantly better than random selection in "
        f"{count['selection', 1]} of them. With FLASH's loss in both, it is significantly better "
        f"in {count['both', 1]} and worse in {count['both', -1]}. "
        f"With 70 % noisy clients the loss gains {noisy['loss']}, the selection {noisy['selection']}, and the "
        f"selection on top of the loss {noisy['both']}."
    )


def describe_loss_on_cifar10() -> str:
    """Return what the docs state of FLASH's loss in studies/norms_cifar10."""
    differences = {}
    for norm in ("batch", "group"):
        d = claims.paired_differences("norms_cifar10", f"both_{norm}", "random_robust")
        differences[norm] = claims.format_interval(d.values())
        assert len(d) == 3
    return (
        f"On CIFAR-10 (30 rounds, 3 seeds) the loss changes random selection by {differences['batch']} points with "
        f"batch norm and by {differences['group']} with group norm"
    )


@cache
def list_computed_texts() -> list[str]:
    """Return the parts of README's section that contain computed numbers."""
    n_tests, n_settings, n_better, n_worse = claims.count_significant(of_papers=True)
    return [
        *test_plateau_claims.readme_rows(),
        *test_plateau_claims.readme_sentences(),
        *test_plateau_fashion_claims.readme_sentences(),
        test_noise_fashion_claims.readme_sentence(),
        f"In {n_better} of {n_settings} settings, at least one published method is significantly better than random "
        "selection by half a point or more",
        f"In {n_worse}, at least one is significantly worse by as much (one Holm correction over {n_tests} tests)",
    ]


def test_each_number_in_the_readme_follows_from_the_results() -> None:
    readme = " ".join(README.split())
    assert [text for text in list_computed_texts() if text not in readme] == []


def test_the_readme_states_the_horizons_of_the_short_runs() -> None:
    baselines = [
        claims.read_results(name).query("selector == 'random'") for name in claims.read_study("leaderboard")["of"]
    ]
    limits = [re.findall(r"rounds=(\d+), virtual_s=(\w+)", b) for runs in baselines for b in runs["budget"].unique()]
    rounds = sorted(int(n) for [(n, clock)] in limits if clock == "None")
    clocks = sorted(int(clock) for [(_, clock)] in limits if clock != "None")
    text = f"({rounds[0]} to {rounds[-1]} rounds, or {clocks[0] // 60} minutes to {clocks[-1] // 3600} hours of v"
    assert text in " ".join(README.split())


def test_the_readme_section_has_no_unchecked_number() -> None:
    """A number that is added to the section must be computed in `list_computed_texts` or be in `STATED`."""
    remaining = re.sub(r"\]\([^)]*\)", "]", FLAT)
    for text in sorted((*list_computed_texts(), *STATED), key=len, reverse=True):
        remaining = remaining.replace(re.sub(r"\]\([^)]*\)", "]", text), "")
    assert re.findall(r"\S*\d\S*", remaining) == []


@for_all("setting", claim_settings.DOCS_ROWS)
def test_each_row_of_the_docs_table_matches_its_study(setting: tuple[str, str, str]) -> None:
    assert claims.format_docs_row(*setting) in (ROOT / "docs" / "where_selection_pays.md").read_text().splitlines()


def test_the_docs_describe_the_loss_the_table_and_the_families_by_the_results() -> None:
    def gain(method: str, setting: str) -> str:
        return claims.format_interval(claims.paired_differences("field_digits", setting, method).values())

    cohorts, regimes = (claims.compare_over_settings(name) for name in ("cohorts_digits", "regimes_digits"))
    assert (len(cohorts[3]), len(regimes[3])) == (9, 1)
    for text in (
        describe_robust_loss(),
        describe_loss_on_cifar10(),
        f"only FedPNS with tuned options is better on average: {regimes[3][0][1]} (paired t-test over ten seeds, Holm "
        f"over {regimes[2]} methods)",
        f"[{cohorts[0]} settings with label skew](../studies/cohorts_digits/README.md) nine methods are, Fed-CBS by "
        f"the most: {cohorts[3][0][1]} (Holm over {cohorts[2]} methods)",
        f"Active FL gains {gain('active_fl', 'dirichlet')} points with Dirichlet 0.1, and has "
        f"{gain('active_fl', 'bimodal70')} with 70 % noisy clients.",
        f"GreedyFed gains {gain('greedyfed', 'bimodal70')} points with 70 % noisy clients",
        f"With OCS all clients train: it has {gain('ocs', 'speeds')} with persistent stragglers",
        f"the largest mean of {len(test_plateau_claims.PUBLISHED)}.",
        f"round robin is better: {FAMILIES[1]} over {FAMILIES[0]} families",
        f"with p = {FAMILIES[2][1:]} after Holm over 22 methods",
    ):
        assert text in DOCS


def test_the_method_names_are_those_of_the_results() -> None:
    assert claims.compare_over_settings("cohorts_digits")[3][0][0] == "fedcbs"
    assert [row for row, _ in claims.compare_over_settings("regimes_digits")[3]] == ["fedpns_tuned"]


def test_the_section_describes_the_studies_correctly() -> None:
    for name in ("regimes_digits", "cohorts_digits"):
        definition = claims.read_study(name)
        assert {"dataset=digits", "model=mlp", "clients=50", "rounds=60", "client.epochs=2"} <= set(
            definition["common"]
        )
        assert ("late" in definition, len(definition["seeds"])) == (False, 10), "the last sixth of 60 rounds"
    assert "late" not in claims.read_study("regimes_fashion"), "three of ten evaluations, the least number"
    assert "\nlr: 0.1 " in (ROOT / "configs/client/sgd.yaml").read_text()


def test_fedbalancers_numbers_are_those_of_its_study() -> None:
    page, index = ((ROOT / "docs" / f"{name}.md").read_text() for name in ("papers/fedbalancer", "paper_results"))
    assert fedbalancer_table.format_index_row() in index.splitlines()
    assert {fedbalancer_table.format_row(*row) for row in fedbalancer_table.ROWS} <= set(page.splitlines())
    for text in fedbalancer_table.describe():
        assert text in " ".join(page.split())


def test_the_round_time_is_that_of_the_benchmark() -> None:
    page = (ROOT / "benchmarks" / "results.md").read_text()
    rows = re.findall(r"^\| (W\d) \| (fedcohort|bare), (\d) process(?:es)? \| ([\d.]+) ", page, re.MULTILINE)
    time = {(workload, int(count), peer): float(ratio) for workload, peer, count, ratio in rows}
    ratios = [time[w, n, "fedcohort"] / time[w, n, "bare"] for w, n, peer in time if peer == "bare"]
    assert len(ratios) == 12, "six workloads with one and two processes"
    assert f"takes {min(ratios):.2f} to {max(ratios):.2f} of a bare PyTorch loop's time" in " ".join(README.split())
