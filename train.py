"""Entry point: python train.py selector=flash agg=scaffold (configs/ has the words of each group)."""

import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fedcohort.host import interrupt

if TYPE_CHECKING:
    from omegaconf import DictConfig


def job(cfg: "DictConfig") -> float | None:
    from fedcohort.jobs.start import start

    return start(cfg)


def main() -> int:
    """Run Hydra with the typed overrides, and return the exit code.

    Slow imports are inside, so that Ctrl-C ends the process at once also during them.
    """
    import hydra

    from fedcohort.jobs import grid
    from fedcohort.jobs.sweep import CURRENT_SWEEP
    from fedcohort.startup.command_line import run_with_one_line_errors
    from fedcohort.startup.compat import speed_up_group_listing

    grid.register_plugins()
    speed_up_group_listing()
    called = hydra.main(version_base="1.3", config_path="configs", config_name="train")(job)
    try:
        code = run_with_one_line_errors(called, sys.argv[1:], Path(__file__).with_name("configs"))
    except (KeyboardInterrupt, SystemExit):
        if CURRENT_SWEEP.stop_sweep(interrupt.interrupts.exit_code):
            raise SystemExit(interrupt.interrupts.exit_code) from None
        raise
    except Exception as error:
        if not CURRENT_SWEEP.has_recorded_error(error):
            CURRENT_SWEEP.finish_sweep()  # a sweep goes on after a job that crashed; its traceback follows
            raise
        code = 1
    return CURRENT_SWEEP.finish_sweep() or code


if __name__ == "__main__":
    gc.disable()  # until `startup.run` or a sweep begins: imports leave no garbage
    is_sweep = not {"-m", "--multirun"}.isdisjoint(sys.argv)
    raise SystemExit(interrupt.run_main(main, "stopped" if is_sweep else interrupt.STOPPED_BEFORE_TRAINING))
