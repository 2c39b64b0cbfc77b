"""Classes in options that would run a program: none may be called."""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from hostile import forked
from hostile.harness import Answer, Case
from hostile.typed_commands import BASE, find_damage, prepare, train

MARKER_FILE = "touched"  # the file that a malicious target would make
PROGRAM = "subprocess.Popen"
TARGETS = (PROGRAM, "webbrowser.subprocess.Popen", "fedcohort.record.provenance.subprocess.Popen")
GROUPS = (
    *("selector", "client", "deadline", "samples", "device", "availability", "attack", "partition", "label_noise"),
    *(
        "feature_noise",
        "augmentation",
        "signal_noise",
        "dataset",
        "model",
        "objective",
        "regulariser",
        "codec",
        "server",
        "agg",
    ),
    *("proxy", "logger"),
)
INSIDE = {
    "objective.base": ("objective=propfair",),
    "partition.base": ("heterogeneity=iid", "partition=quantity"),
    "label_noise.base": ("heterogeneity=iid", "label_noise=asymmetric"),
    "proxy.source": ("proxy=dataset",),
}
CALLS = [  # what is called in other ways
    ("+callback.x._target_=os.system", "callback.x._target_ must be a class"),
    ("+callback.x._target_=builtins.exec", "callback.x._target_ must be a class"),
    ("+callback.x._target_=lightning.pytorch.Trainer", "callback.x._target_ must be an observer"),
    ("+callback.x._target_=builtins.object", "callback.x._target_ must be an observer"),
    ("+callback.x._target_=no.such.thing", "can't be used"),
    ("+callback.x._target_=3", "callback.x"),
    ("+callback.x._target_=[a]", "callback.x"),
    ("+callback.x._target_=''", "callback.x"),
    ("+callback.x._target_=subprocess:Popen", "callback.x"),
    ("+callback.x._args_=[1]", "callback.x"),
    ("callback=default +callback.figures._args_=[1]", "has no option '_args_'"),
    ("callback=default +callback.figures._partial_=true", "has no option '_partial_'"),
    ("callback=default +callback.figures._convert_=all", "has no option '_convert_'"),
    ("+selector._recursive_=false", "has no option '_recursive_'"),
    ("selector._target_=builtins.dict", "selector._target_ must be a class that inherits"),
    ("selector._target_=fedcohort.agg.fedavg.FedAvg", "selector._target_ must be a class that inherits"),
    ("selector._target_=fedcohort.selector.base.Selector", "selector"),
    ("selector._target_=fedcohort.selector.nope.X", "can't be used"),
    ("~selector._target_", "selector._target_ must be a class that inherits"),
    ("+client.x._target_=subprocess.Popen +client.x.args=[touch,touched]", "client.x._target_"),
    ("+callback.x.y._target_=subprocess.Popen +callback.x.y.args=[touch,touched]", "callback.x"),
]


def _malicious() -> Iterator[Case]:
    """Yield a program as the class of every group, inside other components and as a callback."""
    for place in (*GROUPS, *INSIDE, "callback.x"):
        for target in TARGETS if place in ("selector", "objective.base", "callback.x", "logger") else TARGETS[:1]:
            overrides = [
                *INSIDE.get(place, ()),
                f"++{place}._target_={target}",
                f"++{place}.args=[touch,{MARKER_FILE}]",
            ]
            run = partial(_run_train, [*BASE, *overrides])
            yield Case(f"train.py {' '.join(overrides)}", run, (f"{place}._target_",), check=find_damage)


def _run_train(overrides: list[str], folder: Path) -> Answer:
    return forked.train(prepare(folder), overrides)


def _foreign() -> Iterator[Case]:
    """Yield run folders that name a program, as an attacker could send them, for the command that replays them."""
    nodes = {f"{group}={target}": (group, target) for group in ("selector", "deadline") for target in TARGETS}
    nodes |= {"selector=os.system": ("selector", "os.system"), "selector=antigravity.x": ("selector", "antigravity.x")}
    nodes |= {"selector=mine.Selector": ("selector", "mine.Selector")}
    for name, (group, target) in nodes.items():
        run = partial(_replay, group, {"_target_": target, "args": ["touch", MARKER_FILE]})
        yield Case(f"fedcohort replay of a folder with {name}", run, (group,), check=find_damage)
    inner: dict[str, object] = {"_target_": PROGRAM, "args": ["touch", MARKER_FILE]}
    node = {"_target_": "fedcohort.selector.random.Random", "weights": inner}
    yield Case(
        "fedcohort replay of a folder with a program in an option", partial(_replay, "selector", node), ("weights",)
    )


def _replay(group: str, node: Mapping[str, object], folder: Path) -> Answer:
    """Train a small run, put `node` into its folder, and replay it."""
    overrides = [*BASE[:-1], "rounds=2", "callback.figures=null", "callback.progress=null", "callback.summary=null"]
    trained = forked.train(prepare(folder), overrides)
    if trained.code:
        raise RuntimeError(trained.text)
    (run,) = (folder / "logs" / "runs").iterdir()
    run.rename(folder / "received")
    card = json.loads((folder / "received" / "info.json").read_text())
    card["info"]["config"][group] = node
    del card["digest"]  # a stranger can leave out what tells that the folder was changed
    (folder / "received" / "manifest.json").unlink()
    (folder / "received" / "info.json").write_text(json.dumps(card))
    (folder / "mine.py").write_text(f"import pathlib\npathlib.Path({MARKER_FILE!r}).touch()\n")
    answer = forked.fedcohort(folder, ["replay", "received"])
    (folder / "mine.py").unlink()
    return answer


def cases() -> list[Case]:
    """List the cases: other calls, a program in every place, then in received folders."""
    return [*(train(command_line, text) for command_line, text in CALLS), *_malicious(), *_foreign()]
