"""What `run` and `sweep` share: the folder of the config groups, and errors with the commands' messages."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fedcohort.errors import ComponentError, FedcohortError, OptionError
from fedcohort.startup.hydra_errors import explain


def find_configs() -> Path:
    """Return the folder of the config groups: of the working folder, a folder above it, or this installation.

    Raises `OptionError` if none of them has one.
    """
    places = [Path.cwd(), *Path.cwd().parents, Path(__file__).resolve().parents[3]]
    for folder in places:
        if (folder / "configs" / "train.yaml").is_file() and (folder / "configs" / "selector").is_dir():
            return folder / "configs"
    raise OptionError(
        f"there is no folder configs/ in {Path.cwd()} or above it: work in a checkout of fedcohort, "
        "or install it from one with pip install --editable"
    )


@contextmanager
def plain_errors(words: Sequence[str], configs: Path) -> Iterator[None]:
    """Raise `OptionError` with the message that a command prints, where Hydra or a library has its own error.

    Args:
        words: the overrides.
        configs: folder of the config groups.
    """
    try:
        yield
    except FedcohortError as error:
        if not isinstance(error, ComponentError):  # whose cause is an error in the user's own code
            error.__cause__, error.__suppress_context__ = None, True
        raise
    except Exception as error:
        message = explain(error, words, configs)
        if message is None:
            raise
        raise OptionError(message) from None
