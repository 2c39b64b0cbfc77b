"""The numbers on lying clients in docs/where_selection_pays.md follow from the results of studies/lying_digits."""

import numpy as np

from fedcohort.results.method_names import name_method
from whole import claims

STUDY = "lying_digits"
DOCS = " ".join((claims.ROOT / "docs" / "where_selection_pays.md").read_text().split())


def share(method: str, cell: str) -> str:
    """Return the attackers' mean share of the cohorts, in %."""
    return f"{100 * np.mean(list(claims.read_runs(STUDY, cell, 'attack_share')[method].values())):.0f} %"


def loss_of(method: str, cell: str) -> str:
    """Return the difference in accuracy to honest reports on the same seeds, in points, with its interval."""
    false, honest = (claims.read_runs(STUDY, name)[method] for name in (cell, "honest"))
    assert false.keys() == honest.keys()
    return claims.format_interval([value - honest[seed] for seed, value in false.items()])


def describe(cell: str, methods: tuple[str, ...]) -> list[str]:
    return [f"| {name_method(method)} | {share(method, cell)} | {loss_of(method, cell)} |" for method in methods]


def test_the_docs_have_the_shares_and_the_losses_of_the_study() -> None:
    methods = ("ocs", "powd", "active_fl", "ucb_cs", "clustered", "feel", "oort")
    assert " ".join(describe("tenfold", methods)) in DOCS
    reciprocals = f"{share('fedcbs', 'inverted')} ({loss_of('fedcbs', 'inverted')}) where they send reciprocals"
    assert f"Fed-CBS gives them {share('fedcbs', 'tenfold')}, and {reciprocals}" in DOCS
    assert f"random selection {share('random', 'tenfold')}, DivFL {share('divfl', 'tenfold')}." in DOCS
    honest = [share(method, "honest") for method in claims.read_runs(STUDY, "honest")]
    assert f"the same clients have {min(honest).removesuffix(' %')} to {max(honest)}" in DOCS
    small = [
        np.mean([value - claims.read_runs(STUDY, "honest")[m][seed] for seed, value in runs.items()])
        for cell in ("tenth", "inverted")
        for m, runs in claims.read_runs(STUDY, cell).items()
        if m not in ("oort", "fedcbs")
    ]
    assert -2.05 < min(small) < -1.5
    for cell in ("tenth", "inverted"):
        low, high = map(float, loss_of("oort", cell).split("[")[1].rstrip("]").split(", "))
        assert low < 0 < high
    shares = [float(share(m, cell).split()[0]) for cell in ("tenth", "inverted") for m in methods]
    assert f"give them {min(shares):.0f} to {max(shares):.0f} % of the places" in DOCS
    definition = claims.read_study(STUDY)
    assert {"clients=50", "cohort=10", "rounds=40", "attack.fraction=0.2", "partition.alpha=0.1"} <= set(
        definition["common"]
    )
    assert len(definition["seeds"]) == 5
