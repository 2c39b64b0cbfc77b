"""Detection of addresses with a password, which raise an error before anything is written.

Otherwise the password would be on the terminal and in config.yaml, Hydra's multirun.yaml and MLflow.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import parse_qsl

from fedcohort.errors import OptionError

URL_PATTERN = re.compile(r"[A-Za-z][\w+.-]*://[^\s'\"]+")
SECRET_NAMES = ("pass", "pwd", "token", "secret", "api_key", "apikey", "access_key", "auth", "credential", "signature")
PASSWORD_INSTRUCTIONS = (
    "set environment variables instead: MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD (or "
    "MLFLOW_TRACKING_TOKEN) for a server; for a database use its own settings, such as PGPASSWORD or ~/.pgpass"
)


def has_password(address: str) -> bool:
    """Return whether `address` contains a user of a server, a user's password, or a secret in its query.

    The address need not be well formed: a password may contain an unquoted slash.
    """
    scheme, _, url_host_part = address.partition("://")
    url_host_part, _, query_text = url_host_part.partition("?")
    user_part, last_at_sign, _ = url_host_part.rpartition("@")
    has_user_secret = bool(last_at_sign) and (scheme in ("http", "https") or (":" in user_part and scheme != "sqlite"))
    argument_names = [k.lower() for k, _ in parse_qsl(query_text, keep_blank_values=True)]
    return has_user_secret or any(secret_name in k for k in argument_names for secret_name in SECRET_NAMES)


def make_password_error(option: str, address: str) -> OptionError:
    """Return the error for `option`, whose value `address` has a password, which the message masks."""
    masked_address = re.sub(r"\?.*", "?...", re.sub(r"//.*@", "//...@", address))
    return OptionError(f"{option} must be an address without a password, got {masked_address}: {PASSWORD_INSTRUCTIONS}")


def check_for_passwords(arguments: Iterable[str], config_files: Sequence[Path] = ()) -> None:
    """Raise `OptionError` for the first address with a password.

    Args:
        arguments: options as typed, `name=value`.
        config_files: config files that are searched as well.
    """
    named_texts = [(a.partition("=")[0], a) for a in arguments]
    named_texts += [(str(p), p.read_text(errors="replace")) for p in config_files]
    for text_source, text_with_secrets in named_texts:
        for address in URL_PATTERN.findall(text_with_secrets):
            if has_password(address):
                raise make_password_error(text_source, address)
