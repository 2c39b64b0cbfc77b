"""Bad command lines of every command of `fedcohort`, and studies that it rejects, each with the name of the fault."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from hostile import forked
from hostile.harness import Answer, Case
from hostile.typed_commands import BASE, find_damage, prepare, verb, write_study

VERBS = [
    ("", "Usage: fedcohort"),
    ("stdy", "there is no command 'stdy': did you mean study?"),
    ("replya x", "did you mean replay?"),
    ("--nope", "No such option: --nope"),
    ("replay", "needs one run folder"),
    ("replay nope", "is not the folder of a run"),
    ("replay plain", "is not the folder of a run"),
    ("replay file", "file"),
    ("replay run=", "needs one run folder"),
    ("replay plain plain", "needs one run folder"),
    ("replay plain client.lr=3", "client.lr=3 is no option of the selector"),
    ("replay plain selector=nope", "plain"),
    ("figures", "type the folder of a run"),
    ("figures nope", "is not the folder of a run"),
    ("figures plain", "is not the folder of a run"),
    ("figures file", "file"),
    ("figures plain round=0", "round must be an integer"),
    ("figures plain round=x", "round must be an integer"),
    ("figures plain rond=1", "there is no option 'rond'"),
    ("figures round=1", "type the folder of a run"),
    ("sync", "type the folder of a run"),
    ("sync nope", "is not the folder of a run"),
    ("sync plain", "is not the folder of a run"),
    ("sync plain uri=x", "there is no option 'uri'"),
    ("compare nope", "can't read 'nope'"),
    ("compare nope=1", "there is no option 'nope'"),
    ("compare rows=null", "rows must be"),
    ("compare metric=", "metric must be"),
    ("compare metric=a,a", "metric must be"),
    ("compare metric=,", "metric must be"),
    ("compare better=up", "better must be"),
    ("compare curves=maybe", "curves must be"),
    ("compare report=1", "report must be"),
    ("compare axis=hours", "axis must be"),
    ("compare cols=selector", "cols must be"),
    ("compare target=x", "target"),
    ("compare target=90", "target"),
    ("compare target=best_of:", "target"),
    ("compare out=/proc/x", "out must be a writable folder"),
    ("compare out=file", "out"),
    ("compare tracking_uri=sqlite:///nope.db", "tracking_uri must be an existing database"),
    ("compare tracking_uri=ftp://x", "MLflow at ftp://x"),
    ("compare tracking_uri=http://u:p@x", "without a password"),
    ("compare", "tracking_uri must be an existing database"),
    ("study", "type fedcohort study VERB NAME"),
    ("study run", "type fedcohort study VERB NAME"),
    ("study nope x", "type fedcohort study VERB NAME"),
    ("study run nope", "has no study 'nope'"),
    ("study run ../../x", "the name of a study must be letters"),
    ("study status /etc", "the name of a study must be letters"),
    ("study report .", "the name of a study must be letters"),
    ("study tune nope", "has no study 'nope'"),
    ("study run x seeds=a", "seeds must be"),
    ("study run x seeds=-1", "seeds must be"),
    ("study run x seeds=", "seeds must be"),
    ("study run x seeds=0,0", "seeds"),
    ("study run x settings=nope", "settings must be some of"),
    ("study run x settings=", "settings"),
    ("study run x methods=nope", "methods must be some of"),
    ("study run x methods=../x", "methods must be some of"),
    ("study run x n_jobs=0", "n_jobs must be"),
    ("study run x n_jobs=x", "n_jobs must be"),
    ("study run x keep_runs=1", "keep_runs must be"),
    ("study run x again=null", "again must be"),
    ("study run x nope=1", "there is no option 'nope'"),
    ("study run x nope", "can't read 'nope'"),
    ("study status x n_jobs=2", "fedcohort study status takes"),
    ("study report x seeds=1", "fedcohort study report takes"),
    ("study tune x", "has no option `tune`"),
    ("protocol", "type fedcohort protocol VERB"),
    ("protocol run", "type fedcohort protocol run selector=NAME"),
    ("protocol run selector=../x", "selector must be one of"),
    ("protocol run selector=x n_jobs=0", "n_jobs must be"),
    ("protocol report selector=x n_jobs=2", "there is no option 'n_jobs'"),
    ("protocol verify nope", "nope"),
    ("protocol verify file", "file"),
    ("protocol leaderboard", "type fedcohort protocol leaderboard FILE"),
    ("methods nope", "a group must be one of"),
    ("methods ../src", "a group must be one of"),
    ("methods selector=flash", "a group must be one of"),
    ("profile rounds=1", "rounds must be an integer in [2, inf)"),
    ("profile nope", "can't read 'nope'"),
    ("profile selector=nope", "selector must be one of"),
    ("data", "name a dataset"),
    ("data nope", "NAME or PATH must be a file or folder in"),
    ("data ../model/mlp", "NAME or PATH must be a file or folder in"),
    ("data seed=1", "name a dataset"),
    ("data digits out=", "out must be"),
    ("data digits out=/proc/x", "/proc/x"),
    ("data digits out=file", "file"),
    ("data digits nope=1", "nope"),
    ("data digits clients=0", "clients must be"),
    ("data digits partition._target_=subprocess.Popen", "partition._target_"),
    ("data mnist", "mnist"),
    ("data folder dataset.path=nope", "nope"),
    ("prepare", "type fedcohort prepare"),
    ("prepare nope plain out", "the kind must be one of"),
    ("prepare leaf nope out", "nope"),
    ("prepare leaf file out", "file"),
    ("prepare leaf plain plain/out", "is inside SRC"),
    ("prepare leaf plain out", "plain"),
    ("prepare leaf plain out size=0", "size must be"),
    ("prepare leaf plain out size=x", "size must be"),
    ("prepare leaf plain out sise=3", "there is no option 'sise'"),
    ("prepare celeba plain out", "plain"),
    ("prepare imagefolder plain out", "plain"),
    ("prepare waterbirds plain out", "plain"),
    ("prepare spawrious plain out", "plain"),
    ("sweep", "type fedcohort sweep status ID"),
    ("sweep status", "type fedcohort sweep status ID"),
    ("sweep stop x", "type fedcohort sweep status ID"),
    ("sweep status nope", "holds no sweep"),
    ("sweep cancel ../../x", "holds no sweep"),
    ("sweep status x log=y", "there is no option 'log'"),
    ("new", "type fedcohort new"),
    ("new selector", "type fedcohort new"),
    ("new nope x", "what is new must be one of"),
    ("new selector ../x", "its name must be letters, digits and underscores"),
    ("new selector 5x", "such as x5x"),
    ("new selector My", "lower-case Python name"),
    ("new selector class", "lower-case Python name"),
    ("new dataset a-b", "such as a_b"),
    ("new aggregator a.b", "such as a_b"),
    ("new signal \u00fcber", "its name must be letters"),
    ("new selector mine", "there is no folder"),
    ("completion", "bash"),
    ("completion tcsh", "bash"),
    ("completion bash zsh", "bash"),
    ("demo -m", "leave out '-m': fedcohort demo makes single runs"),
    ("demo paths.logs=out", "leave out 'paths.logs=out': fedcohort demo makes single runs"),
    ("run seed", "can't read 'seed'"),
    ("run selector=flsh", "selector must be one of"),
]
STUDIES: list[tuple[str, dict[str, object], str]] = [
    ("a path for a setting", {"settings": {"../../x": {"overrides": []}}}, "settings: the name must be letters"),
    ("a slash in a setting", {"settings": {"5/50": {"overrides": []}}}, "such as x5_50"),
    ("a number for a setting", {"settings": {"5": {"overrides": []}}}, "such as x5"),
    (
        "a path for a bound",
        {"settings": {"a": {"overrides": [], "bounds": {"../b": []}}}},
        "bounds: the name must be letters",
    ),
    ("a path for a method", {"methods": [{"../x": []}]}, "methods: the name must be letters"),
    ("a path for a baseline", {"baseline": "../x"}, "baseline: the name must be letters"),
    ("a program in common", {"common": ["+callback.x._target_=subprocess.Popen"]}, "names code"),
    ("a program in a mapping", {"common": ["+callback.x={_target_:subprocess.Popen}"]}, "names code"),
    ("a program in a setting", {"settings": {"a": {"overrides": ["selector._target_=os.system"]}}}, "names code"),
    ("a folder for Hydra", {"common": [*BASE[:4], "hydra.run.dir=out"]}, "hydra.run.dir"),
    ("a path instead of a choice", {"common": [*BASE[:4], "dataset=../model/mlp"]}, "dataset must be one of"),
    ("logs elsewhere", {"common": ["paths.logs=out"]}, "paths.logs is set by the study itself"),
    ("a study above", {"of": {"../x": "x"}}, "of: the name must be letters"),
]


def _studies() -> Iterator[Case]:
    """Yield studies that a command refuses; the names in them become paths."""
    for name, changes, text in STUDIES:
        run: Callable[[Path], Answer] = partial(_run_study, changes)
        yield Case(f"fedcohort study run with {name}", run, (text,), check=find_damage)


def _run_study(changes: dict[str, object], folder: Path) -> Answer:
    prepare(folder)
    if "of" in changes:
        (folder / "studies" / "bad").mkdir()
        content = {"title": "t", "question": "q", **changes}
        (folder / "studies" / "bad" / "study.yaml").write_text(json.dumps(content))
        return forked.fedcohort(folder, ["study", "report", "bad"])
    write_study(folder, "bad", **changes)
    return forked.fedcohort(folder, ["study", "run", "bad"])


def cases() -> list[Case]:
    """List the cases: command lines, then studies."""
    return [*(verb(command_line, text) for command_line, text in VERBS), *_studies()]
