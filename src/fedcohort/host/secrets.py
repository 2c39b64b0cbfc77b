"""Addresses that carry a password are refused before anything is written, and never repeated.

They would reach the terminal, config.yaml, Hydra's multirun.yaml and MLflow.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import parse_qsl

from fedcohort.errors import OptionError

ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://[^\s'\"]+")
WORDS = ("pass", "pwd", "token", "secret", "api_key", "apikey", "access_key", "auth", "credential", "signature")
HOW = (
    "say who you are in the environment: MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD (or "
    "MLFLOW_TRACKING_TOKEN) for a server, the database's own, such as PGPASSWORD or ~/.pgpass, for a database"
)


def has_password(address: str) -> bool:
    """Whether `address` names a user of a server, a user's password, or a secret in its query.

    It needn't be well formed: a password may hold a slash that nobody has quoted.
    """
    scheme, _, rest = address.partition("://")
    place, _, query = rest.partition("?")
    before, at, _ = place.rpartition("@")
    user = bool(at) and (scheme in ("http", "https") or (":" in before and scheme != "sqlite"))
    names = [name.lower() for name, _ in parse_qsl(query, keep_blank_values=True)]
    return user or any(word in name for name in names for word in WORDS)


def mask(address: str) -> str:
    """Return `address` without its user and its query."""
    return re.sub(r"\?.*", "?...", re.sub(r"//.*@", "//...@", address))


def refusal(option: str, address: str) -> OptionError:
    return OptionError(f"{option} must be an address without a password, got {mask(address)}: {HOW}")


def check(words: Iterable[str], files: Sequence[Path] = ()) -> None:
    """Look at what was typed, and into configs. Raises `OptionError` for the first address with a password."""
    for word in words:
        for address in ADDRESS.findall(word):
            if has_password(address):
                raise refusal(word.partition("=")[0], address)
    for path in files:
        for address in ADDRESS.findall(path.read_text(errors="replace")):
            if has_password(address):
                raise refusal(str(path), address)
