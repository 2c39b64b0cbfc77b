"""The numbers on runs before convergence in docs/where_selection_pays.md follow from the results of the studies.

`PYTHONPATH=src:tests python -m whole.test_short_run_claims` prints the texts. Other tests check the table of settings,
the speed-ups, and the numbers on FLASH's robust loss and on FedBalancer.
"""

import re
from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd
from scipy import stats

from whole import claims
from whole.claims import ALPHA, average, read_runs, read_study
from whole.paper_tables import count_tests, difference, read_table

DOCS = (claims.ROOT / "docs" / "where_selection_pays.md").read_text()
REGIMES, COHORTS, FASHION, SPURIOUS = "regimes_digits", "cohorts_digits", "regimes_fashion", "spurious_cmnist"
FASTER, SLOWER = "▲", "▼"


def gain(study: str, cell: str, method: str, baseline: str = "random") -> str:
    """Return the difference of two methods in a setting with its interval, without a plus sign."""
    return difference(study, cell, method, baseline).removeprefix("+")


def mean_gain(study: str, cell: str, method: str) -> float:
    """Return a method's mean difference to random selection in a setting, in points."""
    return average(claims.paired_differences(study, cell, method).values())


def read_methods(study: str) -> pd.DataFrame:
    """Return the differences of all methods in all settings of a study, in points."""
    table = read_table(study, "numbers").query("role == 'method'")
    return table.assign(diff=100 * table["diff"])


def format_range(values: Iterable[float], form: str = ".0f") -> str:
    ordered = sorted(values)
    return f"{ordered[0]:{form}} to {ordered[-1]:{form}}"


def describe_extremes() -> str:
    """Return the largest mean gains and losses; a clock and combined kinds of heterogeneity are left out on digits."""
    kinds = {cell: node["heterogeneity_kind"] for cell, node in read_study(REGIMES)["settings"].items()}
    regimes = read_methods(REGIMES)
    regimes = regimes[~regimes["selector"].str.endswith("_tuned")]
    of_one_kind = regimes[~regimes["cell"].map(kinds).str.contains("combined")]
    digits = pd.concat([of_one_kind, read_methods(COHORTS)])
    no_clock = digits[~digits["cell"].isin(["speeds", "phones"])]
    spurious = read_methods(SPURIOUS)["diff"]
    return (
        f"is {digits['diff'].max():.1f} points, the largest mean loss without a clock is {-no_clock['diff'].min():.0f} "
        f"points. With spurious correlations they are {spurious.max():.0f} and {-spurious.min():.0f} points."
    )


def describe_sampling_by_size() -> str:
    """Return the shares of pow-d's mean gain that uniform and size-proportional draws have, by aggregation."""
    shares: dict[str, list[float]] = {}
    for cell in read_study(COHORTS)["settings"]:
        alpha = re.match(r"dirichlet(\d+)_", cell)
        for by_size, powd in (("random_proportional", "powd"), ("random_mean", "powd_mean")):
            if alpha:
                strength = "weak" if alpha[1] == "10" else "strong"
                share = 100 * mean_gain(COHORTS, cell, by_size) / mean_gain(COHORTS, cell, powd)
                shares.setdefault(f"{by_size} {strength}", []).append(share)
    weighted, plain = (
        [format_range(shares[f"{method} {strength}"]) for strength in ("strong", "weak")]
        for method in ("random_proportional", "random_mean")
    )
    return (
        f"With Dirichlet 0.05 and 0.1 it has {weighted[0]} % of pow-d's mean gain. With Dirichlet 1 it has "
        f"{weighted[1]} %. Cohorts are 2, 5 and 10, with ten seeds each. With a plain mean of the updates, as in "
        f"pow-d's paper, the shares are {plain[0]} % and {plain[1]} %."
    )


def count_speed(method: str, cost: str, sign: str) -> int:
    """Return in how many settings with label skew a method needs significantly less, or more, to reach 80 %."""
    tables = sorted((claims.ROOT / "studies" / COHORTS / "tables").glob(f"speed_{cost}_*.csv"))
    rows = pd.concat([pd.read_csv(path, index_col="method").loc[method] for path in tables])
    return int(rows.str.contains(sign).sum())


def describe_speed() -> list[str]:
    """Return in how many settings with label skew pow-d and Fed-CBS are better, and need less or more."""
    table = read_methods(COHORTS)
    is_better = (table["holm_p_of_method"] < ALPHA) & (table["diff"] >= claims.MIN_DIFFERENCE)
    n_better = is_better.groupby(table["selector"]).sum()
    ratios = {
        method: [bytes_ratio(method, f"shards2_cohort{n}") for n in (10, 5, 2)] for method in ("flash", "low_ratio")
    }
    assert ratios["flash"] == ratios["low_ratio"]
    assert read_study(COHORTS)["target"] == 0.8
    return [
        f"pow-d is significantly better in {n_better['powd']} of the {len(read_study(COHORTS)['settings'])} settings "
        f"with label skew. Fed-CBS is in {n_better['fedcbs']} (Holm over a method's settings).",
        f"pow-d needs fewer rounds in {count_speed('powd', 'rounds', FASTER)} settings. But it needs more virtual time "
        f"in {count_speed('powd', 'virtual_s', SLOWER)} and more bytes in {count_speed('powd', 'bytes', SLOWER)},",
        f"Fed-CBS needs less virtual time in {count_speed('fedcbs', 'virtual_s', FASTER)}.",
        "{} times the bytes of random selection with 10 of 50 clients per round, {} times with 5, and {} times with "
        "2.".format(*ratios["flash"]),
    ]


def bytes_ratio(method: str, cell: str) -> str:
    spent = read_runs(COHORTS, cell, "bytes")
    return f"{average(spent[method].values()) / average(spent['random'].values()):.1f}"


def describe_oracles() -> str:
    clean, cleanest = (gain(REGIMES, "bimodal70", name) for name in ("oracle_clean", "oracle_cleanest"))
    return (
        f"with `selector.share=0` the clean oracle gains {cleanest} points instead of {clean}. Where noise rates "
        "spread, `share=0` trains the same ten clients in all rounds and loses: "
        f"{gain(REGIMES, 'beta15_narrow', 'oracle_cleanest')} with Beta label noise of 15 %."
    )


def describe_flash() -> list[str]:
    """Return the numbers on FLASH's variants, on its robust loss in its paper's settings, and on normalisation."""
    numbers = read_methods(REGIMES).set_index(["cell", "selector"])
    p = float(str(numbers.loc[("bimodal70", "flash"), "holm_p_all"]))
    robust = [mean_gain("paper_flash", cell, "random_robust") for cell in read_study("paper_flash")["settings"]]
    norms = read_methods("norms_digits").query("selector == 'flash'")
    assert (norms["holm_p"] > ALPHA).all()
    assert set(norms["n"]) == {10}
    cifar = [gain("norms_cifar10", f"both_{norm}", "flash") for norm in ("batch", "group")]
    return [
        f"With 70 % noisy clients they gain {gain('flash_repairs', 'bimodal70', 'flash_whitened')} and "
        f"{gain('flash_repairs', 'bimodal70', 'flash_answered')} on",
        f"with Holm over {count_tests('flash_repairs')} tests. FLASH itself gains "
        f"{gain(REGIMES, 'bimodal70', 'flash')} on the first seeds, which is not significant after Holm over all "
        f"{count_tests(REGIMES)} tests of that study (p = {f'{p:.3f}'[1:]}).",
        f"the same loss gains random selection {format_range(robust, '.1f')} points on average",
        f"FLASH's differences are {format_range(norms['diff'], '.1f')} under skew, noise or both, with either norm.",
        f"FLASH has {cifar[0]} with batch norm and {cifar[1]} with group norm.",
    ]


def describe_tuning() -> str:
    """Return how far tuning for three settings changes the extreme mean differences of methods on digits."""
    by_method = read_methods(REGIMES).groupby("selector")["diff"]
    low, high = by_method.min(), by_method.max()
    return (
        f"pow-d's worst difference shrinks from {low['powd']:.0f} to {low['powd_tuned']:.0f} and `low_ratio`'s from "
        f"{low['low_ratio']:.0f} to {low['low_ratio_tuned']:.1f}; `low_ratio`'s best shrinks from "
        f"{high['low_ratio']:.0f} to {high['low_ratio_tuned']:.1f}. Tuned FedPNS has "
        f"{difference(REGIMES, 'bimodal70', 'fedpns_tuned')} with 70 % noisy clients, and {low['fedpns_tuned']:.1f} at "
        "worst."
    )


def describe_feddiverse() -> list[str]:
    """Return what FedDiverse's estimates cost each client on digits, in rounds of its training, and what follows."""
    flops, rounds = read_runs(REGIMES, "none", "client_flops"), read_runs(REGIMES, "speeds", "rounds")
    random, feddiverse = (average(flops[name].values()) for name in ("random", "feddiverse"))
    n_clients, n_trained = 50, 60 * 10
    n_rounds = (feddiverse - random) / random * n_trained / n_clients
    of_random, of_feddiverse = (average(rounds[name].values()) for name in ("random", "feddiverse"))
    return [
        f"each client computes as much for them as in {n_rounds:.0f} rounds of training",
        f"With persistent stragglers its runs have {of_feddiverse:.0f} rounds on average, those of random selection "
        f"{of_random:.0f}.",
    ]


def describe_fashion() -> list[str]:
    """Return the numbers on the replication with Fashion-MNIST, and on what few seeds detect."""
    numbers = read_methods(FASHION).set_index(["cell", "selector"])["holm_p_all"]
    assert all(numbers[condition] < ALPHA for condition in (("shards1", "fedcbs"), ("bimodal70", "low_ratio")))
    detectable = re.findall(r"The 10 seeds there detect ([\d.]+) points", read_leaderboard())
    return [
        f"FLASH's gain there is not ({gain(FASHION, 'bimodal70', 'flash')}). Nor are those of PyramidFL and Oort with "
        f"stragglers ({difference(FASHION, 'speeds', 'pyramidfl')} and {difference(FASHION, 'speeds', 'oort')}).",
        f"false positive in about {simulate_looks((3, 5, 10)):.0f} of 100 cases",
        f"ten seeds detect {detectable[0]} points",
    ]


def read_leaderboard() -> str:
    return (claims.ROOT / "studies" / "leaderboard" / "README.md").read_text()


def simulate_looks(n_seeds: tuple[int, ...]) -> float:
    """Return in how many of 100 cases a t-test at the .05 level rejects a true null hypothesis at one of its looks."""
    draws = np.random.default_rng(0).standard_normal((40_000, n_seeds[-1]))
    is_rejected = [stats.ttest_1samp(draws[:, :n], 0, axis=1).pvalue < ALPHA for n in n_seeds]
    return float(100 * np.any(is_rejected, axis=0).mean())


TEXTS: tuple[Callable[[], str | list[str]], ...] = (
    *(describe_extremes, describe_sampling_by_size, describe_speed, describe_oracles, describe_flash, describe_tuning),
    *(describe_feddiverse, describe_fashion),
)


def list_texts() -> list[str]:
    described = [describe() for describe in TEXTS]
    return [text for part in described for text in ([part] if isinstance(part, str) else part)]


def test_the_docs_have_the_numbers_of_the_studies() -> None:
    page = re.sub(r"\]\([^)]*\)", "]", " ".join(DOCS.split()))
    assert [text for text in list_texts() if text not in page] == []


def test_round_robin_differs_in_no_single_setting_of_the_leaderboard() -> None:
    row = read_table("leaderboard", "overall").set_index("method").loc["2. round_robin"]
    assert (row["better in"], row["worse in"]) == (0, 0)
    text = (
        f"After Holm over all {claims.count_significant()[0]} tests, round robin is significantly better or worse in no"
    )
    assert text in " ".join(DOCS.split())


def test_fedbalancer_is_not_significant_with_the_authors_network() -> None:
    row = read_methods("paper_fedbalancer_network").set_index("selector").loc["fedbalancer"]
    speed = read_table("paper_fedbalancer_network", "speed_virtual_s").set_index("method").iloc[:, 0]
    assert row["sign"] == 0
    assert not any(sign in speed["fedbalancer"] for sign in (FASTER, SLOWER))
    assert FASTER in speed["oort"]


def test_the_other_published_selectors_gain_where_the_docs_say() -> None:
    table = read_methods("field_digits")
    added = table[~table["selector"].isin(["powd", "oort", "clustered_similarity"])]
    gains = added[(added["holm_p_all"] < ALPHA) & (added["diff"] > 0)]
    assert set(zip(gains["selector"], gains["cell"], strict=True)) == {
        ("greedyfed", "bimodal70"),
        ("active_fl", "dirichlet"),
    }
    differs = set(added.loc[added["sign"] != 0, "selector"])
    assert differs == {"greedyfed", "active_fl", "ocs", "aocs"}
    assert added["selector"].nunique() - len(differs) == 9
    assert count_tests("field_digits") == 62


def test_the_smallest_learning_rate_is_the_best_with_most_noisy_clients() -> None:
    tuning = pd.read_csv(claims.ROOT / "studies" / "plateau_digits" / "tuning.csv").query("setting == 'noise70'")
    by_rate = tuning.set_index("lr")[["seed_900", "seed_901"]].mean(axis=1)
    assert by_rate.idxmax() == by_rate.index.min() == 0.03


if __name__ == "__main__":
    print(*list_texts(), sep="\n")
