"""The numbers of runs that belong to no study, in docs/paper_results.md and docs/papers/fedmaba.md.

benchmarks/earlier_runs.csv has means and standard deviations over seeds, and differences to FedAvg with 95 % intervals:
accuracies in percent, variances of the clients' accuracies in their square.
"""

import pandas as pd

from whole.claims import ROOT

RECORDS = pd.read_csv(ROOT / "benchmarks" / "earlier_runs.csv").set_index(["setting", "method", "metric"])
REFERENCES = {  # name in the table, and the decimals that its deviation allows
    "mnist_cnn": ("MNIST, CNN", 2),
    "fashion_mnist_cnn": ("Fashion-MNIST, CNN", 2),
    "cifar10_cnn": ("CIFAR-10, CNN", 2),
    "cifar10_resnet8_gn": ("CIFAR-10, ResNet-8 with group normalisation", 1),
    "uci_har_cnn": ("UCI-HAR, CNN, its 21 people", 2),
    "shakespeare_lstm": ("Shakespeare (a twentieth), LSTM", 1),
}
SETTINGS = ("Dirichlet 0.5, 10 a round", "two shards, 10 a round", "two shards, all clients")
AGGREGATORS = ("fedavg", "fedmaba, alpha 0.5", "fedmaba, alpha 0.8")
NAMES = {"fedavg": "FedAvg", "fedmaba, alpha 0.5": "FedMABA, alpha 0.5", "fedmaba, alpha 0.8": "FedMABA, alpha 0.8"}


def format_mean(setting: str, method: str, metric: str, decimals: int) -> str:
    """Return the mean with its standard deviation; an empty text where the method was not run."""
    if (setting, method, metric) not in RECORDS.index:
        return ""
    mean, deviation = (float(str(RECORDS.loc[(setting, method, metric), column])) for column in ("mean", "std"))
    return f"{mean:.{decimals}f} ± {deviation:.{decimals}f}"


def format_difference(setting: str, metric: str) -> str:
    """Return the difference of FedMABA with alpha 0.5 to FedAvg, with its interval."""
    columns = ("difference", "low", "high")
    mean, low, high = (float(str(RECORDS.loc[(setting, AGGREGATORS[1], metric), column])) for column in columns)
    return f"{mean:+.1f} [{low:.1f}, {high:.1f}]"


def test_the_reference_accuracies_are_those_of_the_runs() -> None:
    lines = (ROOT / "docs" / "paper_results.md").read_text().splitlines()
    for setting, (name, decimals) in REFERENCES.items():
        assert f"| {name} | {format_mean(setting, 'fedavg', 'accuracy', decimals)} |" in lines
    assert set(RECORDS["seeds"]) == {5}


def test_the_variances_of_fedmaba_are_those_of_the_runs() -> None:
    text = (ROOT / "docs" / "papers" / "fedmaba.md").read_text()
    for method in AGGREGATORS:
        cells = [format_mean(setting, method, "variance", 1) for setting in SETTINGS]
        cells.append(format_mean(SETTINGS[-1], method, "accuracy", 2))
        row = f"| {NAMES[method]} | {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")
        assert f"{row} " in text
    of_all, of_ten = (
        [format_difference(setting, metric) for metric in ("variance", "accuracy")] for setting in SETTINGS[:0:-1]
    )
    flat_text = " ".join(text.split())
    assert (
        f"FedMABA's variance differs from FedAvg's by {of_all[0]} %², and its accuracy by {of_all[1]} points"
        in flat_text
    )
    assert (
        f"With 10 of 100 clients and two shards the differences are {of_ten[0]} %² and {of_ten[1]} points" in flat_text
    )
