"""Published names of methods, and the groups in which figures show them.

The name of a method is in its own file: the beginning of the docstring, as "Fed-CBS" of `selector/fedcbs.py`. `NAMES`
has the names of options without a file, and of methods that studies define. A user's method has the name of its option.
"""

import ast
import importlib.util
import re
from functools import cache
from pathlib import Path

GROUPS = ("published", "ours", "tuned", "stand-ins", "oracles", "for reference")  # in the order of figures
PUBLISHED, OURS, TUNED, STAND_INS, ORACLES, REFERENCES = GROUPS
FOLDERS = ("selector", "agg")  # config groups whose options are methods
NAMES = {  # option, or method of a study: name and group
    "aocs": ("AOCS", PUBLISHED),
    "avg_1t": ("FedAvg+1T", PUBLISHED),
    "ccr": ("FedAvg, CCR weights", OURS),
    "fedavgm": ("FedAvgM", PUBLISHED),
    "fedbalancer": ("FedBalancer", PUBLISHED),
    "fedbalancer_random": ("FedBalancer, random", OURS),
    "fedbio": ("FedBiO", PUBLISHED),
    "fedprox": ("FedProx", PUBLISHED),
    "fedsgd": ("FedSGD", PUBLISHED),
    "fedss": ("SampleSelection", PUBLISHED),
    "feel": ("FEEL", PUBLISHED),
    "flash_literal": ("FLASH, as printed", PUBLISHED),
    "flash_robust": ("FLASH, robust loss", PUBLISHED),
    "full": ("Full participation", REFERENCES),
    "multi_krum": ("Multi-Krum", PUBLISHED),
    "neural_bandit": ("NeuralUCB", STAND_INS),
    "oracle_cleanest": ("Cleanest oracle", ORACLES),
    "oracle_fastest": ("Fastest oracle", ORACLES),
    "powd_mean": ("pow-d, plain mean", PUBLISHED),
    "prox_1t": ("FedProx+1T", PUBLISHED),
    "propfair": ("PropFair", PUBLISHED),
    "qffl": ("q-FFL", PUBLISHED),
    "random": ("random", PUBLISHED),
    "random_mean": ("random, plain mean", REFERENCES),
    "random_proportional": ("random, by size", REFERENCES),
    "random_robust": ("random, robust loss", REFERENCES),
    "restless_bandit": ("Markov bandit", STAND_INS),
    "round_robin": ("Round robin", REFERENCES),
    "s_fedavg": ("S-FedAvg", PUBLISHED),
    "spc": ("FedAvg+SPC", PUBLISHED),
    "wfa": ("FedAvg+WFA", PUBLISHED),
    "worst": ("Worst case", REFERENCES),
}


@cache
def describe_method(method: str) -> tuple[str, str]:
    """Return the published name of a method, and its group.

    `flash_whitened_tuned` is "FLASH, whitened, tuned": without a name, an option after a known one is a variant.
    """
    if method in NAMES:
        return NAMES[method]
    for folder in FOLDERS:
        spec = importlib.util.find_spec(f"fedcohort.{folder}.{method}") if method.isidentifier() else None
        if spec is not None and spec.origin is not None:
            summary = (ast.get_docstring(ast.parse(Path(spec.origin).read_text())) or "").partition("\n\n")[0]
            group = PUBLISHED if re.search(r"\d{4}\)", summary) else OURS
            return re.split(r"[:,(]", summary)[0].strip(), ORACLES if method.startswith("oracle_") else group
    base, _, variant = method.rpartition("_")
    name = describe_method(base)[0] if base else ""
    return (f"{name}, {variant}", TUNED if variant == "tuned" else OURS) if name not in ("", base) else (method, OURS)


def name_method(method: str) -> str:
    """Return the published name of a method, such as "pow-d, plain mean" of `powd_mean`."""
    return describe_method(method)[0]
