"""Shapes and types are checked at run time in every test (they cost nothing outside of them)."""

import functools
import gc
import importlib.metadata
import os
import signal
from collections.abc import Iterator

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: a fork of a process with threads of OpenMP hangs

import hydra.utils  # noqa: F401
import jaxtyping
import omegaconf  # noqa: F401
import pyarrow.compute  # noqa: F401
import pytest
import torch.distributed  # noqa: F401
import typer  # noqa: F401
from lightning.fabric.utilities import registry

import cached_hydra
import fedcohort.lightning  # noqa: F401 - and Lightning, without the compiler of torch
import typecheck

jaxtyping.jaxtyped = typecheck.shape_checks  # type: ignore[assignment]
# The hook compiles each module again that is first imported below one of fedcohort's; so libraries come before it.
hook = jaxtyping.install_import_hook("fedcohort", "typecheck.check")
cached_hydra.install()
os.fsync = lambda fd: None  # no test loses power, and a run waits for the disk ten times
# Lightning looks through all installed packages for each Trainer; a session installs none.
importlib.metadata.entry_points = functools.cache(importlib.metadata.entry_points)  # type: ignore[assignment]
registry.entry_points = importlib.metadata.entry_points  # type: ignore[attr-defined]

# A suite in the background of a script ignores SIGINT, as do its children; tests of Ctrl-C need the normal handler.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Leave out of garbage collections what the session keeps: modules and tests, which are a million objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


@pytest.fixture(scope="session", autouse=True)
def _few_pixels() -> Iterator[None]:
    """Draw the figures of all tests with a quarter of the dots per inch."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("fedcohort.report.figure.style.DPI", 50)
        yield


def pytest_make_parametrize_id(config: object, val: object, argname: str) -> str | None:
    """Name a parameter of bytes by its argument: compressed bytes hold the time, and workers must agree on names."""
    return argname if isinstance(val, bytes) else None
