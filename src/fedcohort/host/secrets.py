"""Detection of addresses with a password, which raise an error before anything is written.

Otherwise the password would be on the terminal and in config.yaml, Hydra's multirun.yaml and MLflow.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import parse_qsl

from fedcohort.errors import OptionError

ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://[^\s'\"]+")
SECRET_NAMES = ("pass", "pwd", "token", "secret", "api_key", "apikey", "access_key", "auth", "credential", "signature")
INSTRUCTIONS = (
    "set environment variables instead: MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD (or "
    "MLFLOW_TRACKING_TOKEN) for a server; for a database use its own settings, such as PGPASSWORD or ~/.pgpass"
)


def has_password(address: str) -> bool:
    """Return whether `address` contains a user of a server, a user's password, or a secret in its query.

    It need not be well formed: a password may contain an unquoted slash.
    """
    scheme, _, location = address.partition("://")
    location, _, query = location.partition("?")
    user, separator, _ = location.rpartition("@")
    has_user = bool(separator) and (scheme in ("http", "https") or (":" in user and scheme != "sqlite"))
    names = [name.lower() for name, _ in parse_qsl(query, keep_blank_values=True)]
    return has_user or any(argument in name for name in names for argument in SECRET_NAMES)


def mask_password(address: str) -> str:
    """Return `address` without its user and its query."""
    return re.sub(r"\?.*", "?...", re.sub(r"//.*@", "//...@", address))


def password_error(option: str, address: str) -> OptionError:
    """Return the error for an option whose value is an address with a password."""
    return OptionError(f"{option} must be an address without a password, got {mask_password(address)}: {INSTRUCTIONS}")


def check_for_passwords(arguments: Iterable[str], files: Sequence[Path] = ()) -> None:
    """Search options and config files; raise `OptionError` for the first address with a password."""
    for argument in arguments:
        for address in ADDRESS.findall(argument):
            if has_password(address):
                raise password_error(argument.partition("=")[0], address)
    for path in files:
        for address in ADDRESS.findall(path.read_text(errors="replace")):
            if has_password(address):
                raise password_error(str(path), address)
