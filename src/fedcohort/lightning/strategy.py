"""The processes of a run, as Lightning starts and ends them."""

import logging
import os
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from lightning.pytorch.strategies import DDPStrategy, SingleDeviceStrategy, Strategy

from fedcohort.host.memory import share_with_children
from fedcohort.host.orphan import end_with_parent
from fedcohort.lightning.compat import MultiProcessingLauncher, launch_forked, timeout_of
from fedcohort.round.guard import blame

LOOPBACKS = ("lo", "lo0")  # as Linux and BSD call the interface that no other machine reaches


class Launcher(MultiProcessingLauncher):
    """Forks the training processes. Lightning tells callbacks of an exception in the process that calls `fit` alone."""

    _strategy: "CohortStrategy"

    def launch(
        self,
        function: Callable[..., object],
        *args: object,
        trainer: Any = None,  # noqa: ANN401  None by its type alone: it is given in each call
        **kwargs: object,
    ) -> object:
        threads = torch.get_num_threads()

        def work(*inner: object, **named: object) -> object:
            end_with_parent()
            torch.set_num_threads(threads)  # Lightning gives each process its part of the cores' instead
            try:
                return function(*inner, **named)
            except BaseException as error:
                for callback in trainer.callbacks:
                    callback.on_exception(trainer, trainer.lightning_module, error)
                owners = next((callback.owners for callback in trainer.callbacks if hasattr(callback, "owners")), None)
                if blamed := blame(error, owners or {}):
                    raise blamed from error
                if isinstance(error, KeyboardInterrupt):
                    raise SystemExit(1) from error  # torch takes a KeyboardInterrupt for an end without faults
                raise

        share_with_children()
        with tempfile.TemporaryDirectory(prefix="fedcohort-") as folder:
            self._strategy.meeting = Path(folder) / "ranks"
            return super().launch(work, *args, trainer=trainer, **kwargs)


class CohortStrategy(DDPStrategy):
    """DDP's processes without its wrapper: gradients stay with the client that they belong to.

    Plain DDP would average gradients of different clients, and hangs on unequal numbers of backward passes.
    meeting: the file in which the processes of one machine find each other; None where they are on several.
    """

    meeting: Path | None = None

    def setup_distributed(self) -> None:
        """Processes of one machine talk through its loopback: no port is open to others, none can be taken already."""
        if self.meeting is not None:
            if loopback := next((name for _, name in socket.if_nameindex() if name in LOOPBACKS), None):
                os.environ["GLOO_SOCKET_IFNAME"] = loopback
            size = self.num_processes
            store = dist.FileStore(str(self.meeting), size)  # type: ignore[attr-defined]
            dist.init_process_group(
                "gloo", store=store, world_size=size, rank=self.local_rank, timeout=timeout_of(self)
            )
        super().setup_distributed()  # which finds the group made
        if self.global_rank > 0:
            logging.getLogger("fedcohort").setLevel(logging.ERROR)  # rank 0 has said it

    def configure_ddp(self) -> None:
        """No gradient averaging."""

    def _configure_launcher(self) -> None:
        super()._configure_launcher()
        launch_forked(self, Launcher)

    def barrier(self, *args: object, **kwargs: object) -> None:
        if dist.is_initialized():
            super().barrier(*args, **kwargs)


def strategy_for(accelerator: str, devices: int, num_nodes: int) -> Strategy | str:
    """One process needs no communication; several talk through gloo on CPUs and NCCL on GPUs."""
    if devices * num_nodes == 1:
        device = torch.device("cpu") if accelerator == "cpu" else torch.device("cuda", 0)
        return SingleDeviceStrategy(device=device)
    if accelerator == "cpu":
        return CohortStrategy(process_group_backend="gloo", start_method="fork" if num_nodes == 1 else "popen")
    return CohortStrategy(process_group_backend="nccl")
