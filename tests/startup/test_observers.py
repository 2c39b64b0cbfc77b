"""Who may watch a run: a mistake is refused with what is allowed."""

import json
import re

import pytest

from case_loop import for_all
from fedcohort.errors import OptionError
from fedcohort.startup.observers import make_observers
from run_harness import compose_overrides

LIGHTNING = "lightning.pytorch.callbacks"
STOP = f"+callback.x._target_={LIGHTNING}.EarlyStopping"
SAVE = f"+callback.x._target_={LIGHTNING}.ModelCheckpoint"
MONITOR_ERROR = "callback.x.monitor must be one of server_val/acc, server_val/loss"

MISTAKES = [
    ((STOP, "+callback.x.monitor=test/loss"), f"{MONITOR_ERROR}, got 'test/loss' (nothing may select on the test set)"),
    ((STOP, "+callback.x.monitor=val_loss"), f"{MONITOR_ERROR}, got 'val_loss'"),
    ((SAVE, "+callback.x.monitor=val_loss"), f"{MONITOR_ERROR}, epoch, step, got 'val_loss'"),
    ((STOP,), "callback.x: needs the option 'monitor'; its options are monitor, min_delta, patience, verbose, mode,"),
    (
        (STOP, "+callback.x.monitr=a", "+callback.x.monitor=b"),
        "callback.x: has no option 'monitr'; its options are monitor,",
    ),
    ((f"+callback.x._target_={LIGHTNING}.EarlyStoping",), f"can't be used: No module named '{LIGHTNING}.EarlyStoping'"),
    (
        ("+callback.x._target_=fedcohort.record.journal.Jurnal",),
        "No module named 'fedcohort.record.journal.Jurnal'",
    ),
    (
        ("+callback.x._target_=torch.nn.ReLU",),
        "callback.x._target_ must be an observer (fedcohort.record.observer.Observer) or a Lightning callback",
    ),
    (
        (SAVE, "+callback.x.dirpath=/elsewhere"),
        "callback.x.dirpath must be null, or a folder inside paths.logs=logs, the only folder that a run writes to",
    ),
    ((SAVE, "+callback.x.dirpath=logs/../elsewhere"), "callback.x.dirpath must be null, or a folder inside paths.logs"),
    ((SAVE, "+callback.x.filename=../x"), "callback.x.filename must be null, or a file's name without a folder"),
    (("logger=mlflow", "logger.logs=/elsewhere"), "logger.logs must be null, or a folder inside paths.logs=logs"),
    (("+callback.x=3",), "callback.x must be null, or a class in _target_ with its options, got 3"),
    (
        ("+callback.x.patience=3",),
        "callback.x must be null, or a class in _target_ with its options, got {'patience': 3}",
    ),
]


@for_all("overrides, message", MISTAKES)
def test_an_invalid_observer_is_rejected_in_one_line(overrides: tuple[str, ...], message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)) as caught:
        make_observers(compose_overrides("logger=none", *overrides))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "overrides",
    [
        (STOP, "+callback.x.monitor=server_val/acc"),
        (SAVE, "+callback.x.monitor=step"),
        (SAVE,),
        (SAVE, "+callback.x.dirpath=logs/best"),
        ("+callback.x._target_=run_harness.CollectReports",),
        ("callback.figures=null",),
    ],
)
def test_valid_observers_are_accepted(overrides: tuple[str, ...]) -> None:
    observers = make_observers(compose_overrides("logger=none", *overrides))
    assert type(observers.observers[0]).__name__ == "Journal"
    assert type(observers.observers[-1]).__name__ == "RunStatus", "it says how the others ended"


def test_only_lightning_callbacks_may_end_a_run_early() -> None:
    timer = ("+callback.a._target_=lightning.pytorch.callbacks.Timer", "+callback.a.duration=00:01:00:00")
    collect = "+callback.c._target_=run_harness.CollectReports"
    stop = (STOP, "+callback.x.monitor=server_val/acc")
    observers = make_observers(compose_overrides("logger=none", *timer, *stop, collect)).callback_configs
    assert [node["_target_"] for node in observers] == [f"{LIGHTNING}.EarlyStopping", f"{LIGHTNING}.Timer"]
    assert observers == json.loads(json.dumps(observers))
    renamed_timer = [override.replace("callback.a", "callback.z") for override in timer]
    assert make_observers(compose_overrides("logger=none", *stop, *renamed_timer)).callback_configs == observers
    assert make_observers(compose_overrides("logger=none", collect)).callback_configs == []
