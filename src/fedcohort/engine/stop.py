"""Ctrl-C and SIGTERM: the round in progress is finished and saved; a second signal drops it."""

import logging
import signal
import threading
from collections.abc import Callable
from typing import Any

import lightning.pytorch as pl

log = logging.getLogger("fedcohort")


class GracefulStop(pl.Callback):
    """Tells `ask(exit_code)` once. Installed after Lightning's own SIGTERM handler, which would drop the round."""

    def __init__(self, ask: Callable[[int], None]) -> None:
        self.ask = ask
        self.asked = False
        self.before: dict[int, Any] = {}

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if threading.current_thread() is threading.main_thread():
            self.before = {number: signal.signal(number, self._on) for number in (signal.SIGINT, signal.SIGTERM)}

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._restore()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        self._restore()

    def _restore(self) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)
        self.before = {}

    def _on(self, number: int, frame: Any) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self.ask(128 + number)
        log.warning("%s: finishing the round; once more to drop it", signal.Signals(number).name)
