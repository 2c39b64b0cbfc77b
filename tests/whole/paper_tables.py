"""The numbers in docs/papers that follow from committed results, except FedBalancer's Table 1.

`PYTHONPATH=src:tests python -m whole.paper_tables` prints verdicts, rows and sentences.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from fedcohort.results.method_names import name_method
from whole import claims, fedbalancer_table, paper_records, ucb_cs_table
from whole.claims import format_interval

STUDIES = claims.ROOT / "studies"
FLASH_SETTINGS = ("noise15", "noniid30", "noniid30_noise15")
FLASH_ROWS = (  # name in the table, method, baseline, column of the results
    ("FLASH", "flash", "random", "late"),
    ("FLASH, best evaluation of each run", "flash", "random", "best"),
    ("FLASH, last round", "flash", "random", "last"),
    ("FLASH as printed", "flash_literal", "random", "late"),
    ("FLASH, reward by the client's duration", "flash_client_tau", "random", "late"),
    ("random, robust loss", "random_robust", "random", "late"),
    ("FLASH, robust loss", "flash_robust", "random", "late"),
    ("FLASH minus random, both with the robust loss", "flash_robust", "random_robust", "late"),
)
FEDDIVERSE_SETTINGS = ("mostly", "strong", "nearly_all", "thirds")
FEDDIVERSE_ROWS = (  # name in the table, method, first and last round
    ("HCSFed", "hcsfed", 21, 25),
    ("FedDiverse", "feddiverse", 21, 25),
    ("FedDiverse, rounds 12 to 25", "feddiverse", 12, 25),
    ("FedDiverse, round 25", "feddiverse", 25, 25),
    ("pow-d", "powd", 21, 25),
)
FEDDIVERSE_SELECTORS = (  # name in the table, method, value of the paper
    ("HCSFed", "hcsfed", "91.5"),
    ("FedDiverse", "feddiverse", "94.0"),
    ("pow-d", "powd", "92.9"),
    ("full participation", "full", "93.2"),
    ("round robin", "round_robin", "93.5"),
    ("random", "random", "92.0"),
    ("FedPNS", "fedpns", "91.5"),
)
FEDMABA_ROWS = (
    ("mean of the last sixth", "late"),
    ("last round", "last"),
    ("best evaluation of each run", "best"),
)


def read_table(study: str, name: str) -> pd.DataFrame:
    return pd.read_csv(STUDIES / study / "tables" / f"{name}.csv")


def difference(study: str, cell: str, method: str, baseline: str = "random", column: str = "late") -> str:
    """Return the paired difference of two methods in a setting, in points."""
    runs_by_method = claims.read_runs(study, cell, column)
    scale = 1 if column == "late" else 100
    differences = [scale * (runs_by_method[method][s] - x) for s, x in runs_by_method[baseline].items()]
    return format_interval(differences).replace("-0.0", "0.0")


def difference_in_rounds(study: str, cell: str, method: str, first: int, last: int) -> str:
    """Return the paired difference to random selection, in points, of the mean over the rounds `first` to `last`."""
    return format_interval(claims.differences_in_rounds(study, cell, method, first, last))


def count_tests(study: str) -> int:
    """Return the number of methods' tests in all settings, the family of the correction over all."""
    return int(read_table(study, "numbers").query("role == 'method'")["holm_p_all"].notna().sum())


def is_significant(study: str, cell: str, method: str) -> bool:
    """Return whether p after Holm over all methods and settings of the study is below .05."""
    numbers = read_table(study, "numbers").set_index(["cell", "selector"])
    return float(str(numbers.loc[(cell, method), "holm_p_all"])) < claims.ALPHA


def over_settings(study: str, method: str) -> tuple[str, str]:
    """Return a method's difference over the settings of a study, with its interval, and p after Holm over methods."""
    row = read_table(study, "overall").set_index("method").loc[method]
    return str(row["over these settings"]).rstrip("▲▼"), f"{float(str(row['p'])):.3f}".removeprefix("0")


def describe_horizon(study: str) -> str:
    """Return the number of rounds of a study's runs and of its seeds."""
    results = claims.read_results(study)
    return f"{results['rounds'].max():.0f} rounds and {results['seed'].nunique()} seeds"


def describe_flash_losses() -> list[str]:
    """Return the sentences on FLASH and random selection with the robust loss and with cross-entropy, on digits."""
    settings = list(claims.read_study("robust_loss")["settings"])
    with_loss = [
        claims.average(claims.paired_differences("robust_loss", cell, "flash_robust", "random_robust").values())
        for cell in settings
    ]
    significant = [cell for cell in settings if is_significant("robust_loss", cell, "flash")]
    worse = [cell for cell in significant if difference("robust_loss", cell, "flash").startswith("-")]
    assert (set(significant) - set(worse), len(worse), len(settings)) == ({"bimodal70"}, 2, 5)
    results = claims.read_results("robust_loss")
    return [
        f"(digits, five settings with label noise, at most {results['rounds'].max():.0f} rounds, "
        f"{results['seed'].nunique()} seeds) FLASH minus random, both with this loss, is {min(with_loss):.1f} to "
        f"{max(with_loss):.1f} points on average.",
        "With cross-entropy, FLASH is significantly better than random selection in one setting, by "
        f"{difference('robust_loss', 'bimodal70', 'flash')} points with 90 % wrong labels at 70 % of clients. It is "
        f"significantly worse in two (Holm over {count_tests('robust_loss')} tests).",
    ]


def describe_flash_selectors() -> str:
    """Return the sentences on all selectors in FLASH's settings."""
    overall = read_table("paper_flash", "overall").set_index("method").drop(index="random")
    better = [method for method, text in overall["over these settings"].items() if text.endswith("▲")]
    assert better == ["fedcbs"]
    gain, p = over_settings("paper_flash", "fedcbs")
    tests = read_table("paper_flash", "numbers").query("role == 'method'")
    significant = tests[tests["holm_p_all"] < claims.ALPHA]
    assert (significant["diff"] < 0).all()
    assert set(significant["cell"]) == {"noniid30"}
    losses = " and ".join(sorted(name_method(method) for method in significant["selector"]))
    return (
        f"Over the three settings one of the study's {len(overall)} selectors is significantly better than random "
        f"selection: {name_method('fedcbs')}, by {gain} points (Holm over {len(overall)} methods, p = {p}). In single "
        f"settings, Holm over all {count_tests('paper_flash')} tests leaves no significant gain, and two significant "
        f"losses: {losses} with skewed clients."
    )


def describe_verdicts() -> dict[str, str]:
    """Return the first sentence of each page."""
    accuracy, fairness = over_settings("paper_ucb_cs", "ucb_cs"), over_settings("paper_ucb_cs_fairness", "ucb_cs")
    assert not is_significant("paper_flash", "noniid30_noise15", "flash")
    assert is_significant("spurious_cmnist", "mostly", "feddiverse")
    assert is_significant("paper_fedmaba", "shards_full", "fedmaba")
    assert not is_significant("paper_fedmaba", "shards", "fedmaba")
    worst_group = [difference_in_rounds("spurious_cmnist", "mostly", "feddiverse", *r) for r in ((21, 25), (25, 25))]
    assert worst_group[0] == difference("spurious_cmnist", "mostly", "feddiverse")
    speed_up = fedbalancer_table.format_median("fedbalancer")
    full, partial = (difference("paper_fedmaba", cell, "fedmaba", "fedavg") for cell in ("shards_full", "shards"))
    return {
        "flash": f"Not confirmed on Fashion-MNIST with 10 of 50 clients, {describe_horizon('paper_flash')}: FLASH's "
        f"selection differs from random selection by {difference('paper_flash', 'noniid30_noise15', 'flash')} points "
        f"under label skew and label noise, not significant with Holm over {count_tests('paper_flash')} tests.",
        "ucb_cs": f"Neither claim is confirmed (Fashion-MNIST, {describe_horizon('paper_ucb_cs')}, 2 settings, and "
        f"Synthetic(1, 1), {describe_horizon('paper_ucb_cs_fairness')}, 3 settings, Holm over methods): UCB-CS differs "
        f"from random by {accuracy[0]} points of accuracy (p = {accuracy[1]}) and {fairness[0]} hundredths of Jain's "
        f"index (p = {fairness[1]}).",
        "feddiverse": f"In part, on coloured MNIST with 9 of 24 clients, {describe_horizon('spurious_cmnist')}: "
        f"FedDiverse's worst group differs from random selection's by {worst_group[0]} points in rounds 21 to 25 "
        f"(Holm over {count_tests('spurious_cmnist')} tests), and by {worst_group[1]} in the last.",
        "fedmaba": "Only with full participation, on Fashion-MNIST with 100 clients, "
        f"{describe_horizon('paper_fedmaba')}: the worst 5 % of clients differ from FedAvg's by {full} points with all "
        f"clients (Holm over {count_tests('paper_fedmaba')} tests), and by {partial} with 10 per round.",
        "fedbalancer": "In part, on UCI-HAR within 10,600 virtual seconds and with 10 seeds: FedBalancer is "
        f"{speed_up} times as fast as the best FedAvg variant (median, 98 %), and Oort's client selection alone "
        f"{fedbalancer_table.format_median('oort')} (uncorrected).",
    }


def list_rows() -> Iterator[tuple[str, str]]:
    """Yield the rows of the pages' tables of studies, each with the name of its page."""
    for label, method, baseline, column in FLASH_ROWS:
        texts = [difference("paper_flash", cell, method, baseline, column) for cell in FLASH_SETTINGS]
        yield "flash", join_row(label, *texts)
    names = {"oracle_clean": "clean labels", "oracle_diverse": "all classes"}
    oracles = [(cell, claims.find_best_oracle("paper_flash", cell)[0]) for cell in FLASH_SETTINGS]
    texts = [f"{difference('paper_flash', cell, oracle)} ({names[oracle]})" for cell, oracle in oracles]
    yield "flash", join_row("best oracle", *texts)
    for label, method in ucb_cs_table.ROWS:
        texts = [difference("paper_ucb_cs", cell, method) for cell in ("alpha03", "alpha2")]
        yield "ucb_cs", join_row(label, *texts)
        texts = [difference("paper_ucb_cs_fairness", cell, method) for cell in ucb_cs_table.SETTINGS]
        yield "ucb_cs", join_row(label, *texts)
    for label, method in ucb_cs_table.VARIANTS:
        texts = [difference("paper_ucb_cs_fairness", cell, method, "ucb_cs") for cell in ucb_cs_table.SETTINGS]
        yield "ucb_cs", join_row(label, *texts)
    yield from (("ucb_cs", row) for row in ucb_cs_table.list_rows())
    for label, method, first, last in FEDDIVERSE_ROWS:
        texts = [difference_in_rounds("spurious_cmnist", cell, method, first, last) for cell in FEDDIVERSE_SETTINGS]
        yield "feddiverse", join_row(label, *texts)
    for label, method, value_of_paper in FEDDIVERSE_SELECTORS:
        yield "feddiverse", join_row(label, *_describe_worst_group(method), value_of_paper)
    for row in (*fedbalancer_table.list_component_rows(), *paper_records.list_fig7_rows()):
        yield "fedbalancer", row
    for label, column in FEDMABA_ROWS:
        settings = ("dirichlet", "shards", "shards_full")
        texts = [difference("paper_fedmaba", cell, "fedmaba", "fedavg", column) for cell in settings]
        yield "fedmaba", join_row(label, *texts)


def _describe_worst_group(method: str) -> tuple[str, str]:
    """Return the accuracy of the worst group with its deviation, and a method's difference to random selection."""
    values = list(claims.read_runs("spurious_cmnist", "mostly")[method].values())
    accuracy = f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f}"
    if method == "random":
        return accuracy, "–"
    text = difference("spurious_cmnist", "mostly", method)
    bold = "**" * (method != "full" and is_significant("spurious_cmnist", "mostly", method))
    return accuracy, f"{bold}{text}{bold}"


def join_row(*texts: str) -> str:
    return f"| {' | '.join(texts)} |"


def list_sentences() -> Iterator[tuple[str, str]]:
    """Yield the sentences with numbers of studies, each with the name of its page."""
    group, batch = (difference("norms_cifar10", f"both_{norm}", "flash") for norm in ("group", "batch"))
    for text in describe_flash_losses():
        yield "flash", text
    assert is_significant("norms_cifar10", "both_group", "flash")
    assert not is_significant("norms_cifar10", "both_batch", "flash")
    yield (
        "flash",
        f"a small ResNet, {describe_horizon('norms_cifar10')}. FLASH differs from random selection by {group} points "
        f"with group norm, and by {batch} with batch norm. Only the first is significant (Holm over "
        f"{count_tests('norms_cifar10')} tests).",
    )
    yield "flash", describe_flash_selectors()
    yield from (("flash", text) for text in paper_records.list_flash_sentences())
    yield from (("ucb_cs", text) for text in ucb_cs_table.list_sentences())
    fairness, _ = over_settings("paper_ucb_cs_fairness", "powd")
    yield (
        "ucb_cs",
        f"Over the three columns pow-d has {fairness} hundredths, which is significant (Holm over 3 methods).",
    )
    gains = {cell: claims.find_best_oracle("paper_ucb_cs", cell)[1].removeprefix("+") for cell in ("alpha03", "alpha2")}
    yield (
        "ucb_cs",
        f"above random by {gains['alpha03']} points with Dirichlet 0.3, and by {gains['alpha2']} with Dirichlet 2",
    )
    curves = pd.read_parquet(STUDIES / "paper_ucb_cs" / "curves.parquet").query("cell == 'alpha03'")
    last_sixth = curves[(curves["selector"] == "random") & (curves["step"] > 200 * 5 / 6)]
    deviation = 100 * last_sixth.groupby("seed")["value"].std().mean()
    yield (
        "ucb_cs",
        f"standard deviation of {deviation:.1f} points between the evaluations of the last sixth of the rounds",
    )
    costs = [_find_cost("spurious_cmnist", "mostly", "feddiverse", c) for c in ("client_flops", "virtual_s", "bytes")]
    curves = pd.read_parquet(STUDIES / "spurious_cmnist" / "curves.parquet").query("cell == 'mostly'")
    mean = 100 * curves[curves["selector"] == "random"].groupby("step")["value"].mean()
    yield (
        "feddiverse",
        f"is {mean[9]:.0f} % in round 9, {mean[12]:.0f} % in round 12, {mean[15]:.0f} % in round 15 and "
        f"{mean[18]:.0f} % in round 18.",
    )
    yield "feddiverse", "{:.1f} times the client FLOPs, {:.2f} times the time and {:.2f} times the bytes".format(*costs)
    for text in (fedbalancer_table.describe_components(), *paper_records.list_fedbalancer_sentences()):
        yield "fedbalancer", text


def _find_cost(study: str, cell: str, method: str, column: str) -> float:
    """Return the mean cost of a method's runs over that of random selection."""
    runs_by_method = claims.read_runs(study, cell, column)
    return claims.average(runs_by_method[method].values()) / claims.average(runs_by_method["random"].values())


def main() -> None:
    """Print the verdicts, rows and sentences with the names of their pages."""
    for page, text in [*describe_verdicts().items(), *list_rows(), *list_sentences()]:
        print(f"{page}: {text}")


if __name__ == "__main__":
    main()
