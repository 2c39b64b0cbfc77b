"""The training processes of a run, which Lightning starts and ends."""

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

from fedcohort.host.memory import share_memory_with_children
from fedcohort.host.orphan import end_when_parent_ends
from fedcohort.lightning.compat import MultiProcessingLauncher, make_fork_launcher, read_process_timeout
from fedcohort.round.guard import find_faulty_component

LOOPBACK_NAMES = ("lo", "lo0")  # names of the loopback interface on Linux and BSD


class CohortLauncher(MultiProcessingLauncher):
    """A launcher that forks the training processes, and calls the callbacks' `on_exception` in each process.

    Lightning calls `on_exception` in the first process only.
    """

    _strategy: "CohortStrategy"

    def launch(
        self,
        function: Callable[..., object],
        *args: object,
        trainer: Any = None,  # noqa: ANN401  None by its type alone: it is given in each call
        **kwargs: object,
    ) -> object:
        n_threads = torch.get_num_threads()

        def run_in_process(*positional_arguments: object, **keyword_arguments: object) -> object:
            end_when_parent_ends()
            torch.set_num_threads(n_threads)  # Lightning gives each process its part of the cores' instead
            try:
                return function(*positional_arguments, **keyword_arguments)
            except BaseException as error:
                for callback in trainer.callbacks:
                    callback.on_exception(trainer, trainer.lightning_module, error)
                option_mappings = (
                    c.component_by_module for c in trainer.callbacks if hasattr(c, "component_by_module")
                )
                if component_error := find_faulty_component(error, next(option_mappings, {})):
                    raise component_error from error
                if isinstance(error, KeyboardInterrupt):
                    raise SystemExit(1) from error  # torch takes a KeyboardInterrupt for an end without faults
                raise

        share_memory_with_children()
        with tempfile.TemporaryDirectory(prefix="fedcohort-") as rendezvous_folder:
            self._strategy.rendezvous_file = Path(rendezvous_folder) / "ranks"
            return super().launch(run_in_process, *args, trainer=trainer, **kwargs)


class CohortStrategy(DDPStrategy):
    """The processes of DDP without its wrapper, so that gradients of different clients are not averaged.

    DDP's wrapper would also hang on unequal numbers of backward passes.

    Attributes:
        rendezvous_file: file by which the processes of one machine find each other; None on several machines.
    """

    rendezvous_file: Path | None = None

    def setup_distributed(self) -> None:
        """Connect the training processes of one machine by its loopback interface and a file, not a network port."""
        if self.rendezvous_file is not None:
            if loopback_interface := next((k for _, k in socket.if_nameindex() if k in LOOPBACK_NAMES), None):
                os.environ["GLOO_SOCKET_IFNAME"] = loopback_interface
            n, process_timeout = self.num_processes, read_process_timeout(self)
            file_store = dist.FileStore(str(self.rendezvous_file), n)  # type: ignore[attr-defined]
            dist.init_process_group(
                "gloo", store=file_store, world_size=n, rank=self.local_rank, timeout=process_timeout
            )
        super().setup_distributed()  # it uses the existing process group
        if self.global_rank > 0:
            logging.getLogger("fedcohort").setLevel(logging.ERROR)  # rank 0 logs the same messages

    def configure_ddp(self) -> None:
        """Do nothing, as gradients are not averaged."""

    def _configure_launcher(self) -> None:
        super()._configure_launcher()
        make_fork_launcher(self, CohortLauncher)

    def barrier(self, *args: object, **kwargs: object) -> None:
        if dist.is_initialized():
            super().barrier(*args, **kwargs)


def make_lightning_strategy(accelerator: str, devices: int, num_nodes: int) -> Strategy | str:
    """Return Lightning's strategy: a single process without communication, or several with gloo (CPUs) or NCCL (GPUs).

    Args:
        accelerator: "cpu" or "gpu".
        devices: processes on each machine.
        num_nodes: number of machines.
    """
    if devices * num_nodes == 1:
        return SingleDeviceStrategy(torch.device("cpu") if accelerator == "cpu" else torch.device("cuda", 0))
    if accelerator == "cpu":
        return CohortStrategy(process_group_backend="gloo", start_method="fork" if num_nodes == 1 else "popen")
    return CohortStrategy(process_group_backend="nccl")
