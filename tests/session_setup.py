"""Prepare a process that runs tests: shapes are checked at run time, and nothing waits for a disk."""

import functools
import importlib.metadata
import os

import hydra.utils  # noqa: F401
import jaxtyping
import omegaconf  # noqa: F401
import pyarrow.compute  # noqa: F401
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
