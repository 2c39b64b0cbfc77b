"""Labels for the components of scores and of selectors' states.

A component without a label is shown under its name in `clients.parquet` and the journal.
"""

NAMES = {
    "ai": "attribute imbalance",
    "ci": "class imbalance",
    "drop": "share of the update that is dropped",
    "explore": "exploration",
    "exploit": "exploitation",
    "prev_reward": "last reward",
    "sc": "spurious correlation",
    "staleness": "bonus for waiting",
    "system": "factor for speed",
    "train_ratio": "training loss relative to its first",
    "utility": "utility of the losses",
    "val_ratio": "validation loss relative to its first",
    "work": "multiple of the local work",
}


def label_of(name: str) -> str:
    """Return the label of a component: "last reward" for `prev_reward`, "theta 0" for `theta_0`, which has none."""
    return NAMES.get(name, name.replace("_", " "))
