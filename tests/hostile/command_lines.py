"""Bad command lines of `train.py` and of every command of `fedcohort`, each rejected with the name of the fault.

The faults are wrong names, types, ranges, combinations, paths, resumes, sweeps, and targets that would run a program.
The commands are children of one process that has imported what they need.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from hostile import forked
from hostile.harness import Answer, Case

BASE = ("rounds=1", "clients=10", "cohort=2", "model=logreg", "logger=none", "callback=none")
TOUCHED = "touched"  # the file that a malicious target would make
FREE = ("configs", "train.py", "logs", "studies", "received", "src", "tests", "file", "plain", "sweeps", "out")

# Wrong names: what is typed, and a text of the answer.
NAMES = [
    ("selctor=flash", "did you mean selector?"),
    ("selector=flsh", "did you mean selector=flash?"),
    ("selector=null", "selector must be one of"),
    ("selector=3", "selector must be one of"),
    ("selector=", "selector"),
    ("selector=[random,flash]", "got several"),
    ("~selector", "selector must be one of the choices in configs/selector, got nothing"),
    ("~dataset", "dataset"),
    ("~engine", "engine"),
    ("~paths", "paths"),
    ("~seed", "seed"),
    ("~client.lr", "client"),
    ("agg=fedag", "agg must be one of"),
    ("server=sdg", "server must be one of"),
    ("model=resnet9", "model must be one of"),
    ("dataset=digit", "dataset must be one of"),
    ("dataset=../model/mlp", "dataset must be one of"),
    ("partition=./iid", "partition must be one of"),
    ("model=mlp.yaml", "model must be one of"),
    ("device=/etc/passwd", "device must be one of"),
    ("experiment=nope", "experiment must be one of"),
    ("heterogeneity=nope", "heterogeneity must be one of"),
    ("heterogeneity.sets=3", "heterogeneity has no option 'sets'"),
    ("engine=fast", "engine must be one of"),
    ("trainer=tpu", "trainer must be one of"),
    ("callback=all", "callback must be one of"),
    ("logger=wandb", "logger must be one of"),
    ("+foo=1", "there is no option 'foo'"),
    ("++eval.foo=1", "eval has no option 'foo'"),
    ("eval.evry=2", "eval has no option 'evry'"),
    ("trainer.gpus=2", "trainer has no option 'gpus'"),
    ("selector.gamma=1", "selector=random has no option 'gamma'"),
    ("+selector.gamma=1", "has no option 'gamma'"),
    ("seed.x=1", "seed has no option 'x'"),
    ("client.LR=1", "client=sgd has no option 'LR'"),
    ("+seed=3", "seed exists already"),
    ("+selector=flash", "selector is chosen already"),
    ("~nope", "~nope"),
    ("~selector.nope", "deletes an option that does not exist"),
    ("objective@objective.base=gce", "no chosen component contains this one"),
    ("partition@partition.base=nope", "partition@partition.base"),
    ("+requires.agg.server=sgd", "requires"),
    ("requires=3", "requires is set by aliases"),
]

# What can't be read.
SYNTAX = [
    ("seed", "can't read 'seed'"),
    ("=3", "can't read '=3'"),
    ("+=3", "can't read '+=3'"),
    ("seed=[1,2", "can't read 'seed=[1,2'"),
    ("seed={a:1", "can't read"),
    ("seed='1", "can't read"),
    ("seed=1,2", "put -m first"),
    ("seed=range(3)", "put -m first"),
    ("selector=random,flash", "put -m first"),
    ("seed=${nope}", "nope"),
    ("seed=${oc.env:NO_SUCH_VARIABLE}", "NO_SUCH_VARIABLE"),
    ("seed=${nope:3}", "nope"),
    ("seed=???", "seed"),
    ("seed=${seed}", "Recursive interpolation"),
    ("--nope", "--nope"),
    ("--cfg=nope", "--cfg"),
    ("--resolve", "--resolve"),
    ("--config-name=nope", "nope"),
    ("--package=nope", "--package"),
    ("clients = 3", "clients"),
    ("seed==3", "seed"),
    ("", "''"),
    ("\x00", ""),
]

# Types and ranges of the options that belong to no component: option, values that it may not have.
RANGES = {
    "seed": ("-1", "1.5", "one", "null", "[1]", "{a:1}", "true", "1e400"),
    "data_seed": ("-1", "x"),
    "clients": ("0", "-3", "2.5", "many"),
    "cohort": ("0", "-1", "null", "1.5"),
    "rounds": ("0", "-1", "null", "inf", "1e3"),
    "name": ("../x", "a/b", "''", "-x", "3", "'a b'"),
    "resume": ("maybe", "1", "null"),
    "objective_metric": ("test/acc", "acc", "clients/acc_mean"),
    "deadline.window_s": ("-1", "inf", "nan"),
    "until.virtual_s": ("0", "-1", "inf"),
    "until.bytes": ("0", "x"),
    "until.acc": ("0", "90", "-0.1"),
    "split.server_val": ("0", "0.6", "null"),
    "split.client_val": ("-0.1", "0.9"),
    "split.limit": ("0", "x"),
    "eval.every": ("0", "null"),
    "eval.clients_every": ("-1", "x"),
    "eval.clients_sample": ("0", "-2"),
    "checkpoint.every": ("0", "x"),
    "checkpoint.every_s": ("-1", "nan"),
    "update_limit": ("0", "inf", "x"),
    "client_store.limit_gb": ("-1", "x"),
    "sweep.report": ("3", "perhaps"),
    "sweep.skip_refused": ("null",),
    "sweep.wait": ("null",),
    "engine.kind": ("fast", "null"),
    "engine.slices": ("0", "100001"),
    "engine.bn_var": ("none",),
    "engine.closed_form": ("2",),
    "engine.channels_last": ("true", "maybe"),
    "engine.chunk": ("0",),
    "engine.precision": ("float16", "bfloat16"),
    "engine.force": ("maybe", "1"),
    "trainer.accelerator": ("tpu", "null"),
    "trainer.devices": ("0", "100000", "all"),
    "trainer.num_nodes": ("0", "x"),
    "trainer.threads": ("0", "100000"),
    "paths.logs": ("''", "/proc/x", "file", "file/x", "null", "3"),
}

# Ranges of components: words, and a text of the answer.
COMPONENTS = [
    ("selector=flash selector.lam=0", "selector.lam"),
    ("selector=flash selector.context=nope", "selector.context"),
    ("selector=ucb_cs selector.discount=2", "selector.discount"),
    ("selector=ucb_cs selector.tie=coin", "selector.tie"),
    ("selector=powd selector.candidates=0", "candidates"),
    ("selector=oort selector.nope=0", "selector=oort has no option 'nope'"),
    ("client.lr=0", "client.lr"),
    ("client.lr=nan", "client.lr"),
    ("client.lr=fast", "client.lr"),
    ("client.batch=0", "client.batch"),
    ("client.epochs=0", "client.epochs"),
    ("client.epochs=1.5", "client.epochs"),
    ("client.steps=0", "client.steps"),
    ("client.momentum=1", "client.momentum"),
    ("client.clip=-1", "client.clip"),
    ("client=adam client.lr=-1", "client.lr"),
    ("model=mlp model.hidden=[0]", "hidden"),
    ("model=mlp model.hidden=3", "hidden"),
    ("model=mlp model.hidden=[a]", "hidden"),
    ("model=mlp model.hidden=[9000000000]", "memory"),
    ("model=resnet8_gn model.width=0", "width"),
    ("model=resnet8_gn model.groups=3", "groups"),
    ("model=resnet8_gn model.norm=layer", "norm"),
    (
        "model=resnet8_gn model.width=4 model.groups=4 engine.channels_last=yes",
        "engine.channels_last must be auto or no",
    ),
    ("model=mobilenet_v2_gn model.width=0", "width"),
    ("model=mobilenet_v2_gn model.weights=nope.pt", "weights"),
    ("model=char_lstm model.layers=0", "layers"),
    ("heterogeneity=iid partition=dirichlet partition.alpha=0", "alpha"),
    ("heterogeneity=iid partition=label_shards partition.shards=0", "partition"),
    ("heterogeneity=iid partition=quantity partition.nope=0", "no option 'nope'"),
    ("heterogeneity=iid label_noise=beta label_noise.a=0", "label_noise.a"),
    ("heterogeneity=iid label_noise=bimodal label_noise.share=2", "label_noise.share"),
    ("heterogeneity=iid feature_noise=gaussian feature_noise.nope=2", "no option 'nope'"),
    ("availability=bernoulli availability.p=0", "availability.p"),
    ("availability=bernoulli availability.p=2", "availability.p"),
    ("availability=diurnal availability.day_s=0", "availability.day_s"),
    ("availability=trace", "availability"),
    ("availability=trace availability.path=nope.csv", "nope.csv"),
    ("device=trace", "device"),
    ("device=trace device.path=nope.csv", "nope.csv"),
    ("device=shifted_exponential device.nope=1", "no option 'nope'"),
    ("deadline=fixed deadline.k=0", "deadline.k"),
    ("deadline=over_commit deadline.nope=0", "no option 'nope'"),
    ("attack=loss_inflation attack.nope=2", "no option 'nope'"),
    ("codec=quant codec.bits=0", "codec.bits"),
    ("codec=lowrank codec.nope=0", "no option 'nope'"),
    ("regulariser=prox regulariser.mu=-1", "regulariser.mu"),
    ("objective=gce objective.q=0", "objective.q"),
    ("objective=propfair objective.base=3", "base"),
    ("agg=qffl agg.q=-1", "agg.q"),
    ("agg=term agg.nope=1", "no option 'nope'"),
    ("server=adam server.lr=0", "server.lr"),
    ("server=momentum server.beta=1", "server.beta"),
    ("samples=random samples.nope=1", "no option 'nope'"),
    ("proxy=noise proxy.n=0", "proxy.n"),
    ("proxy=folder", "proxy"),
    ("dataset=synthetic dataset.nope=0", "no option 'nope'"),
    ("callback=default callback.progress.lines_every=0", "callback.progress.lines_every"),
    ("callback=default callback.summary.full=maybe", "callback.summary.full"),
    ("callback=default callback.figure=null", "callback has no option 'figure'"),
    ("logger=mlflow logger.every_s=-1", "logger.every_s"),
    ("logger=mlflow logger.experiment=''", "logger.experiment"),
    ("logger=mlflow logger.tracking_uri=http://u:p@x", "without a password"),
]

# Combinations that are legal alone.
COMBINATIONS = [
    ("clients=3 cohort=9", "cohort=9 exceeds clients=3"),
    ("clients=100000", "clients"),
    ("agg=fedavgm server=adam", "stands for"),
    ("agg=fedprox regulariser=none", "stands for"),
    ("model=char_lstm", "char_lstm"),
    ("model=resnet18_gn model.norm=batch client.batch=1", "client.batch=1"),
    ("augmentation=crop_flip dataset=synthetic", "crop_flip"),
    ("trainer.devices=2 trainer.threads=2", "trainer.threads"),
    ("trainer.num_nodes=2", "trainer.num_nodes"),
    ("trainer.accelerator=gpu", "trainer.devices"),
    ("device=instant until.virtual_s=5", "until.virtual_s"),
    ("agg=feddf", "proxy"),
    ("partition=natural heterogeneity=iid", "natural"),
    ("selector=oracle_groups", "attribute"),
    ("dataset=mnist", "mnist"),
    ("dataset=folder", "dataset"),
    ("dataset=folder dataset.path=nope", "nope"),
    ("dataset=folder dataset.path=file", "file"),
    ("dataset=femnist dataset.path=/", "/"),
    ("proxy=dataset dataset@proxy.source=synthetic agg=feddf", "can't be part of another component"),
    ("heterogeneity=iid partition=attribute", "attribute"),
    ("dataset=digits dataset.client=user", "no option 'client'"),
    ("clients=null", "clients"),
    ("split.limit=5", "split.limit"),
    ("engine.precision=bf16", "engine.precision"),
]

# Combinations that run after a notice.
NOTICED = [
    ("client.epochs=2 client.steps=3", "client.epochs=2 has no effect"),
    ("deadline=fixed deadline.partial_work=true client.epochs=1", "no effect"),
    ("resume=true", "nothing to resume"),
    ("eval.every=5", "exceeds rounds=1"),
    ("callback=default logger=mlflow logger.tracking_uri=ftp://x", "MLflow at ftp://x can't be reached"),
]

# Paths and Hydra's own options, which would write elsewhere or call what they name.
PATHS = [
    ("hydra.run.dir=/tmp/elsewhere", "hydra.run.dir=/tmp/elsewhere is rejected"),
    ("hydra.run.dir=.", "hydra.run.dir"),
    ("hydra={run:{dir:out}}", "hydra"),
    ("hydra.output_subdir=.hydra", "hydra.output_subdir"),
    ("hydra.job.chdir=true", "hydra.job.chdir"),
    ("hydra.job.name=x", "hydra.job.name"),
    ("hydra.job_logging.root.level=DEBUG", "hydra.job_logging"),
    ("hydra/job_logging=default", "hydra/job_logging"),
    ("hydra/output=default", "hydra/output"),
    ("hydra.sweep.dir=/tmp/elsewhere", "hydra.sweep.dir must be a folder inside paths.logs"),
    ("hydra.sweep.dir=logs/../out", "hydra.sweep.dir must be a folder inside paths.logs"),
    ("hydra.sweep.subdir=..", "hydra.sweep.subdir"),
    ("hydra.mode=MULTIRUN", "put -m first"),
    ("hydra.launcher.submitit_folder=/tmp/x", "hydra.launcher.submitit_folder"),
    ("+hydra.callbacks.x._target_=subprocess.Popen +hydra.callbacks.x.args=[touch,touched]", "hydra.callbacks"),
    ("+hydra.job_logging.handlers.x.class=subprocess.Popen", "hydra.job_logging"),
    ("+callback.x._target_=lightning.pytorch.callbacks.ModelCheckpoint +callback.x.dirpath=out", "callback.x.dirpath"),
    (
        "+callback.x._target_=lightning.pytorch.callbacks.ModelCheckpoint +callback.x.dirpath=logs/..",
        "callback.x.dirpath",
    ),
    (
        "+callback.x._target_=lightning.pytorch.callbacks.ModelCheckpoint +callback.x.filename=../a",
        "callback.x.filename",
    ),
    (
        "+callback.x._target_=lightning.pytorch.callbacks.OnExceptionCheckpoint +callback.x.dirpath=/",
        "callback.x.dirpath",
    ),
    ("logger=mlflow logger.logs=out", "logger.logs must be null, or a folder inside paths.logs"),
]

# Sweeps, refused before their first job.
SWEEPS = [
    ("-m selector=random,flsh", "flsh"),
    ("-m cohort=2,200", "cohort=200"),
    ("-m seed=0,-1", "seed must be an integer"),
    ("-m seed=0,x", "seed must be an integer"),
    ("-m seed=range(0)", "the sweep has no jobs"),
    ("-m seed=0,1 rounds=0", "rounds"),
    ("-m hydra/launcher=nope seed=0,1", "hydra/launcher"),
    ("-m hydra/launcher=slurm seed=0,1", "hydra/launcher=slurm needs"),
    ("-m hydra/launcher=local hydra.launcher.n_jobs=0 seed=0,1", "launcher"),
    ("-m hydra/launcher=local hydra.launcher.n_jobs=x seed=0,1", "launcher"),
    ("-m hydra/sweeper=nope seed=0,1", "hydra/sweeper"),
    ("-m hydra.sweeper.max_batch_size=0 seed=0,1", "max_batch_size"),
    ("-m hydra.sweep.dir=/tmp/elsewhere seed=0,1", "hydra.sweep.dir"),
    ("-m paths.logs=/proc/x seed=0,1", "paths.logs"),
    ("-m paths.logs=file seed=0,1", "paths.logs"),
    ("-m objective_metric=test/acc seed=0,1", "objective_metric"),
    ("-m logger=mlflow logger.tracking_uri=http://u:p@x seed=0,1", "without a password"),
    ("-m selector._target_=os.system seed=0,1", "selector._target_"),
    ("-m +callback.x._target_=subprocess.Popen,subprocess.run seed=0", "callback.x._target_"),
]

# Verbs of `fedcohort`; {run} is a folder that is no run, {file} a file.
VERBS = [
    ("", "Usage: fedcohort"),
    ("stdy", "there is no command 'stdy': did you mean study?"),
    ("figurse x", "did you mean figures?"),
    ("--nope", "No such option: --nope"),
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
    ("compare out=/proc/x", "out must be a folder"),
    ("compare out=file", "out"),
    ("compare tracking_uri=sqlite:///nope.db", "tracking_uri must be a database that exists"),
    ("compare tracking_uri=ftp://x", "MLflow at ftp://x"),
    ("compare tracking_uri=http://u:p@x", "without a password"),
    ("compare", "tracking_uri must be a database that exists"),
    ("study", "type fedcohort study VERB NAME"),
    ("study run", "type fedcohort study VERB NAME"),
    ("study nope x", "type fedcohort study VERB NAME"),
    ("study run nope", "there is no study 'nope'"),
    ("study run ../../x", "the name of a study must be letters"),
    ("study status /etc", "the name of a study must be letters"),
    ("study report .", "the name of a study must be letters"),
    ("study tune nope", "there is no study 'nope'"),
    ("study run x seeds=a", "seeds must be"),
    ("study run x seeds=-1", "seeds must be"),
    ("study run x seeds=", "seeds must be"),
    ("study run x seeds=0,0", "seeds"),
    ("study run x cells=nope", "cells must be some of"),
    ("study run x cells=", "cells"),
    ("study run x selectors=nope", "selectors must be some of"),
    ("study run x selectors=../x", "selectors must be some of"),
    ("study run x n_jobs=0", "n_jobs must be"),
    ("study run x n_jobs=x", "n_jobs must be"),
    ("study run x keep_runs=1", "keep_runs must be"),
    ("study run x again=null", "again must be"),
    ("study run x nope=1", "there is no option 'nope'"),
    ("study run x nope", "can't read 'nope'"),
    ("study status x n_jobs=2", "fedcohort study status takes"),
    ("study report x seeds=1", "fedcohort study report takes"),
    ("study tune x", "says nothing of `tune`"),
    ("methods nope", "a group must be one of"),
    ("methods ../src", "a group must be one of"),
    ("methods selector=flash", "a group must be one of"),
    ("profile rounds=1", "rounds must be an integer in [2, inf)"),
    ("profile nope", "can't read 'nope'"),
    ("profile selector=nope", "selector must be one of"),
    ("data", "name a dataset"),
    ("data nope", "dataset must be one of"),
    ("data ../model/mlp", "dataset must be one of"),
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
    ("sweep status nope", "ID must be one of those"),
    ("sweep cancel ../../x", "ID must be one of those"),
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
    ("demo -m", "fedcohort demo rejects"),
    ("demo paths.logs=out", "fedcohort demo rejects"),
    ("run seed", "can't read 'seed'"),
    ("run selector=flsh", "selector must be one of"),
]

PROGRAM = "subprocess.Popen"
TARGETS = (PROGRAM, "webbrowser.subprocess.Popen", "fedcohort.record.provenance.subprocess.Popen")
GROUPS = (
    *("selector", "client", "deadline", "samples", "device", "availability", "attack", "partition", "label_noise"),
    *(
        "feature_noise",
        "augmentation",
        "dataset",
        "model",
        "objective",
        "regulariser",
        "codec",
        "server",
        "agg",
        "proxy",
    ),
    "logger",
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


def cases() -> list[Case]:
    """Return all cases."""
    found = []
    for table in (NAMES, SYNTAX, COMPONENTS, COMBINATIONS, PATHS, SWEEPS, CALLS):
        found += [_train(words, text) for words, text in table]
    found += [_train(f"{option}={value}", option) for option, values in RANGES.items() for value in values]
    found += [_verb(words, text) for words, text in VERBS]
    found += [replace(_train(words, text), accepted=True, check=lambda folder: "") for words, text in NOTICED]
    return [*found, *_malicious(), *_studies()]


def _train(words: str, text: str, *more: str) -> Case:
    sweep = words.startswith("-m")
    split = [words] if " = " in words or "'a b'" in words else words.split(" ")
    typed = [*(["-m"] if sweep else []), *BASE, *split[int(sweep) :], *more]
    return Case(f"train.py {words!r}", lambda folder: forked.train(_prepare(folder), typed), (text,), check=_damage)


def _verb(words: str, text: str) -> Case:
    typed = words.split(" ") if words else []
    return Case(f"fedcohort {words}", lambda f: forked.fedcohort(_prepare(f), typed), (text,), check=_damage)


def _prepare(folder: Path) -> Path:
    """Give the folder a file, an empty folder and a small study."""
    (folder / "file").write_text("text\n")
    (folder / "plain").mkdir()
    _write_study(folder, "x")
    return folder


def _write_study(folder: Path, name: str, **changes: object) -> None:
    study: dict[str, object] = {
        "title": "t",
        "question": "q",
        "common": list(BASE[:4]),
        "baseline": "random",
        "selectors": ["round_robin"],
        "cells": {"equal": {"words": ["heterogeneity=iid"]}},
        "seeds": [0],
    }
    (folder / "studies" / name).mkdir(parents=True)
    (folder / "studies" / name / "study.yaml").write_text(json.dumps({**study, **changes}))


def _damage(folder: Path) -> str:
    """Say what was written that a refused command doesn't write."""
    strange = sorted(path.name for path in folder.iterdir() if path.name not in FREE)
    runs = sorted(path.name for path in folder.glob("logs/runs/*"))
    return f"it wrote {', '.join(strange + runs)}" if strange or runs else ""


def _malicious() -> Iterator[Case]:
    """Yield a program as the class of every group, inside other components and as a callback."""
    for place in (*GROUPS, *INSIDE, "callback.x"):
        for target in TARGETS if place in ("selector", "objective.base", "callback.x", "logger") else TARGETS[:1]:
            words = [*INSIDE.get(place, ()), f"++{place}._target_={target}", f"++{place}.args=[touch,{TOUCHED}]"]
            run = partial(_run_train, [*BASE, *words])
            yield Case(f"train.py {' '.join(words)}", run, (f"{place}._target_",), check=_damage)


def _run_train(words: list[str], folder: Path) -> Answer:
    return forked.train(_prepare(folder), words)


STUDIES: list[tuple[str, dict[str, object], str]] = [
    ("a path for a cell", {"cells": {"../../x": {"words": []}}}, "cells: the name must be letters"),
    ("a slash in a cell", {"cells": {"5/50": {"words": []}}}, "such as x5_50"),
    ("a number for a cell", {"cells": {"5": {"words": []}}}, "such as x5"),
    ("a path for a bound", {"cells": {"a": {"words": [], "bounds": {"../b": []}}}}, "bounds: the name must be letters"),
    ("a path for a row", {"selectors": [{"../x": []}]}, "selectors: the name must be letters"),
    ("a path for a baseline", {"baseline": "../x"}, "baseline: the name must be letters"),
    ("a program in common", {"common": ["+callback.x._target_=subprocess.Popen"]}, "names code"),
    ("a program in a mapping", {"common": ["+callback.x={_target_:subprocess.Popen}"]}, "names code"),
    ("a program in a cell", {"cells": {"a": {"words": ["selector._target_=os.system"]}}}, "names code"),
    ("a folder for Hydra", {"common": [*BASE[:4], "hydra.run.dir=out"]}, "hydra.run.dir"),
    ("a path for a word", {"common": [*BASE[:4], "dataset=../model/mlp"]}, "dataset must be one of"),
    ("logs elsewhere", {"common": ["paths.logs=out"]}, "paths.logs is the study's own"),
    ("a study above", {"of": {"../x": "x"}}, "of: the name must be letters"),
]


def _studies() -> Iterator[Case]:
    """Yield studies that a command refuses; the names in them become paths."""
    for name, changes, text in STUDIES:
        run: Callable[[Path], Answer] = partial(_run_study, changes)
        yield Case(f"fedcohort study run with {name}", run, (text,), check=_damage)


def _run_study(changes: dict[str, object], folder: Path) -> Answer:
    _prepare(folder)
    if "of" in changes:
        (folder / "studies" / "bad").mkdir()
        content = {"title": "t", "question": "q", **changes}
        (folder / "studies" / "bad" / "study.yaml").write_text(json.dumps(content))
        return forked.fedcohort(folder, ["study", "report", "bad"])
    _write_study(folder, "bad", **changes)
    return forked.fedcohort(folder, ["study", "run", "bad"])
