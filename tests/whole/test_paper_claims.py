"""The numbers that docs/paper_results.md takes from the studies of the papers' experiments."""

import numpy as np
import pandas as pd
import pytest

from whole import claims

STUDIES = claims.ROOT / "studies"
DOCS = " ".join((claims.ROOT / "docs" / "paper_results.md").read_text().split())


def read_table(study: str, name: str) -> pd.DataFrame:
    return pd.read_csv(STUDIES / study / "tables" / f"{name}.csv")


def difference(study: str, cell: str, method: str, baseline: str) -> str:
    """Return the paired difference of two methods in a setting, in points."""
    runs_by_method = claims.read_runs(study, cell)
    return claims.format_interval([runs_by_method[method][s] - value for s, value in runs_by_method[baseline].items()])


def describe_ucb_cs() -> list[str]:
    overall = read_table("paper_ucb_cs_fairness", "overall").set_index("method")["over these settings"]
    gains = {cell: claims.find_best_oracle("paper_ucb_cs", cell)[1].removeprefix("+") for cell in ("alpha03", "alpha2")}
    curves = pd.read_parquet(STUDIES / "paper_ucb_cs" / "curves.parquet").query("cell == 'alpha03'")
    last_sixth = curves[(curves["selector"] == "random") & (curves["step"] > 200 * 5 / 6)]
    deviation = 100 * last_sixth.groupby("seed")["value"].std().mean()
    assert overall["powd"] == "+21.0 [7.1, 34.9]▲"
    return [
        "over all three pow-d is better by 0.21 [0.07, 0.35]",
        f"standard deviation of {deviation:.1f} points between the evaluations of the last sixth of the rounds",
        f"above random by {gains['alpha03']} points with Dirichlet 0.3, and by {gains['alpha2']} with Dirichlet 2",
    ]


def describe_other_studies() -> list[str]:
    losses = [difference("paper_flash", "noniid30_noise15", m, "random") for m in ("random_robust", "flash_robust")]
    headroom = claims.find_best_oracle("paper_regret", "both")[1].removeprefix("+")
    speed = claims.read_runs("paper_fedbalancer", "har", "virtual_s_to_target")
    oort, with_random, both = (
        np.exp(np.mean([np.log(seconds / speed[method][s]) for s, seconds in speed["prox_1t"].items()]))
        for method in ("oort", "fedbalancer_random", "fedbalancer")
    )
    return [
        f"random selection with the loss gains {losses[0]} over random selection with cross-entropy, "
        f"and FLASH with the loss {losses[1]}.",
        f"greedy oracle is {headroom} points above random, and no method is significantly better than random",
        f"HCSFed gains {difference('spurious_cmnist', 'mostly', 'hcsfed', 'random')} points over random there",
        f"Oort's clients alone are {oort:.2f} times as fast as the first row, FedBalancer with random clients "
        f"{with_random:.2f}, FedBalancer {both:.2f}.",
    ]


def test_the_page_has_the_numbers_of_the_studies() -> None:
    for text in (*describe_ucb_cs(), *describe_other_studies()):
        assert text in DOCS


@pytest.mark.parametrize(("study", "n_methods"), [("paper_ucb_cs_fairness", 9), ("paper_regret", 19)])
def test_no_selector_is_better_in_a_setting(study: str, n_methods: int) -> None:
    methods = read_table(study, "numbers").query("role == 'method'")
    assert len(methods) == n_methods
    assert (methods["sign"] <= 0).all()
