"""What a run that ends before its first evaluation is told at its start: its training will be in no number."""

from collections.abc import Mapping
from typing import Any

WHAT = {"every": "", "clients_every": " on the clients"}  # options of the node `eval`, and what they are of


def remarks(config: Mapping[str, Any]) -> list[str]:
    """Return a line for evaluations that are further apart than the run has rounds; config: composed."""
    rounds = config["rounds"]
    late = [name for name in WHAT if config["eval"][name] > rounds]
    if not late:
        return []
    named = " and ".join(f"eval.{name}={config['eval'][name]}" for name in late)
    exceed = "exceeds" if len(late) == 1 else "exceed"
    return [f"{named} {exceed} rounds={rounds}: only the first model is evaluated{WHAT[late[0]]}, before any training"]
