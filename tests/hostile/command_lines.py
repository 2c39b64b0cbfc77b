"""Bad options of `train.py`, each rejected with the name of the fault, or accepted with a notice.

The faults are wrong names, types, ranges, combinations, paths, resumes and sweeps. `verbs.py` has the commands of
`fedcohort`, `malicious_targets.py` targets that would run a program.
"""

from dataclasses import replace

from hostile.harness import Case
from hostile.option_values import COMPONENTS, RANGES
from hostile.typed_commands import train

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
    ("objective@objective.base=gce", "no chosen component contains another one"),
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
    ("proxy=dataset dataset@proxy.source=synthetic agg=feddf", "also defines the clients"),
    ("heterogeneity=iid partition=attribute", "attribute"),
    ("dataset=digits dataset.client=user", "no option 'client'"),
    ("clients=null", "clients"),
    ("split.limit=5", "split.limit"),
    ("engine.precision=bf16", "engine.precision"),
]

# Combinations that run after a notice.
COMBINATIONS_WITH_NOTICE = [
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
    ("-m hydra/launcher=slurm seed=0,1", "hydra/launcher=slurm needs"),  # the plugin, or sbatch
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


def cases() -> list[Case]:
    """List the cases: those that are rejected, then those that run with a notice."""
    rejected = (*NAMES, *SYNTAX, *COMPONENTS, *COMBINATIONS, *PATHS, *SWEEPS)
    results = [train(command_line, text) for command_line, text in rejected]
    results += [train(f"{option}={value}", option) for option, values in RANGES.items() for value in values]
    return [
        *results,
        *(
            replace(train(command_line, text), accepted=True, check=lambda folder: "")
            for command_line, text in COMBINATIONS_WITH_NOTICE
        ),
    ]
