"""What the parts of scores and beliefs are called for a reader who doesn't know the code.

A part without a name here is shown under its own, which is what `clients.parquet` and the journal have.
"""

NAMES = {
    "ai": "attribute imbalance",
    "ci": "class imbalance",
    "drop": "share of the update left out",
    "explore": "exploration",
    "exploit": "exploitation",
    "prev_reward": "its last reward",
    "sc": "spurious correlation",
    "staleness": "bonus for waiting",
    "system": "factor for speed",
    "train_ratio": "training loss over its first",
    "utility": "utility of its losses",
    "val_ratio": "validation loss over its first",
    "work": "times the local work",
}


def spell(name: str) -> str:
    """`prev_reward` is "its last reward"; `theta_0`, which has no name, "theta 0"."""
    return NAMES.get(name, name.replace("_", " "))
