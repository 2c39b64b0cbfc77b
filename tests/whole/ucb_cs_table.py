"""The numbers in docs/papers/ucb_cs.md on Jain's index in the last round, from the results of the study."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from whole import claims

STUDY = "paper_ucb_cs_fairness"
ROWS = (("pow-d", "powd"), ("UCB-CS", "ucb_cs"), ("rpow-d", "rpowd"))
SETTINGS = ("one", "two", "three")
VARIANTS = (
    *(("gamma = 0.5", "ucb_cs_gamma50"), ("gamma = 0.9", "ucb_cs_gamma90"), ("gamma = 1", "ucb_cs_gamma100")),
    ("index and sigma of Algorithm 1", "ucb_cs_algorithm1"),
)


def read_last_round(cell: str, method: str) -> dict[int, float]:
    """Return Jain's index of the losses in the last round by seed, on Synthetic(1, 1)."""
    return dict(claims.read_runs(STUDY, cell, "last")[method])


def describe_last_round() -> str:
    """Return the sentences on the order of the methods in the last round, after UCB-CS' Table I, and on their tests."""
    methods = [method for _, method in ROWS]
    tests = [(cell, method) for cell in SETTINGS for method in methods]
    differences = {}
    for cell, method in tests:
        baseline = read_last_round(cell, "random")
        differences[cell, method] = [x - baseline[s] for s, x in read_last_round(cell, method).items()]
    p_values = {test: claims.t_test_p(values) for test, values in differences.items()}
    below = [test for test, p in p_values.items() if p < claims.ALPHA]
    assert below == [("one", "powd"), ("one", "ucb_cs"), ("three", "powd")]
    assert all(claims.average(differences[test]) > 0 for test in below)
    assert min(claims.adjust_by_holm(list(p_values.values()))) > claims.ALPHA
    means = {test: claims.average(read_last_round(*test).values()) for test in tests}
    ordered = [cell for cell in SETTINGS if sorted(methods, key=lambda name: -means[cell, name]) == methods]
    assert ordered == ["two", "three"]
    return (
        "The order of pow-d, UCB-CS and rpow-d is the paper's with 2 and 3 clients. Uncorrected, UCB-CS and pow-d have "
        "a higher index than random selection with one client a round, and pow-d with three (p < .05). Holm over the "
        "nine tests leaves none of these differences significant."
    )


def list_rows() -> Iterator[str]:
    """Yield the rows of the table of the last round: mean and standard deviation over seeds."""
    for label, method in (*ROWS, ("random, by size", "random")):
        indices = [list(read_last_round(cell, method).values()) for cell in SETTINGS]
        cells = [f"{np.mean(values):.2f} ± {np.std(values, ddof=1):.2f}" for values in indices]
        yield f"| {label} | {' | '.join(cells)} |"


def list_sentences() -> Iterator[str]:
    """Yield the sentences on the variants of UCB-CS and on the last round."""
    for cell in SETTINGS:
        results = claims.read_runs(STUDY, cell)
        names = ["ucb_cs", *(method for _, method in VARIANTS)]
        ranking = sorted(names, key=lambda name: claims.average(results[name].values()))
        assert (ranking[0], ranking[-1]) == ("ucb_cs_gamma100", "ucb_cs_algorithm1")
    yield "gamma = 1 has the lowest mean index in each column, and Algorithm 1 the highest."
    yield describe_last_round()
    fig3 = pd.read_csv(claims.ROOT / "studies" / "paper_ucb_cs" / "tables" / "numbers.csv").query("role == 'method'")
    assert (fig3["holm_p"] > claims.ALPHA).all()
    yield f"In neither column is a difference significant (Holm over {fig3['selector'].nunique()} methods)."
