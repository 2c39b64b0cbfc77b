"""Prepare a process that runs tests: shapes are checked at run time, and nothing waits for a disk."""

import functools
import importlib.metadata
import os
from collections.abc import Mapping
from typing import Any

import fedcohort.lightning  # noqa: F401 - before any other import of Lightning, which would load torch's compiler

# isort: split
import hydra.utils  # noqa: F401
import jaxtyping
import omegaconf  # noqa: F401
import pyarrow.compute  # noqa: F401
import torch.distributed
import typer  # noqa: F401
from hydra import version as hydra_version
from lightning.fabric.utilities import registry

import cached_hydra
import typecheck

jaxtyping.jaxtyped = typecheck.shape_checks  # type: ignore[assignment]
# The hook compiles each module again that is first imported below one of fedcohort's; so libraries come before it.
hook = jaxtyping.install_import_hook("fedcohort", "typecheck.check")
cached_hydra.install()
hydra_version._get_version = functools.cache(hydra_version._get_version)  # Hydra parses its version in each check
os.fsync = lambda fd: None  # no test loses power, and a run waits for the disk ten times
torch.testing._comparison._HAS_DTENSOR = False  # `assert_close` imports distributed tensors, which no test compares
# Lightning looks through all installed packages for each Trainer; a session installs none.
importlib.metadata.entry_points = functools.cache(importlib.metadata.entry_points)  # type: ignore[assignment]
registry.entry_points = importlib.metadata.entry_points  # type: ignore[attr-defined]

import shared_digits  # noqa: E402 - with the import hook
from fedcohort.record import provenance, sources  # noqa: E402
from fedcohort.roles import flatten_config  # noqa: E402


@functools.cache
def _digest_targets(target_options: frozenset[tuple[str, Any]]) -> str:
    return sources.digest_sources(dict(target_options))


def digest_sources(config: Mapping[str, Any]) -> str:
    """Return the digest of the source files of a run, computed once for all runs of the same classes."""
    return _digest_targets(frozenset(item for item in flatten_config(config) if item[0].endswith(sources.TARGET_KEY)))


vars(provenance)["digest_sources"] = digest_sources
shared_digits.install()
