"""A mistyped option ends in one line that names it, and no file is written. No new process is started."""

import logging
from pathlib import Path

import pytest

from config_options import CONFIGS
from fedcohort.host import cores
from fedcohort.startup import run
from fedcohort.startup.hydra_errors import explain_error
from run_harness import compose_overrides, run_training


def refusal(logs: Path, *overrides: str) -> str:
    """Return the error line of `python train.py <overrides>`."""
    try:
        run.run(compose_overrides(f"paths.logs={logs}", *overrides))
    except Exception as error:
        line = explain_error(error, overrides, CONFIGS)
        if line is None:
            raise
        return line
    raise AssertionError(f"{overrides} ran")


MAX_THREADS = 8 * cores.count_available_cores()
SELECTORS = sorted(path.stem for path in (CONFIGS / "selector").glob("*.yaml"))
CASES = [
    # an option, a group or a choice that does not exist
    (
        "selector=ucb_cs selector.discont=0.5",
        "selector=ucb_cs has no option 'discont'; its options are discount, index",
    ),
    ("client.LR=1", "client=sgd has no option 'LR'; its options are lr, decay"),
    (
        "dataset.path=data",
        "dataset=digits has no option 'path'; it has no options; 'path' is an option of dataset=celeba,",
    ),
    (
        "model.path=my.Net",
        "model=mlp has no option 'path'; its only option is hidden; 'path' is an option of model=module",
    ),
    ("lr=0.1", "there is no option 'lr'; did you mean client.lr or server.lr?"),
    ("client_lr=0.1", "there is no option 'client_lr'; did you mean client.lr?"),
    ("dataset=./my.csv", "got './my.csv'. For your own, type dataset=folder dataset.path=./my.csv"),
    ("model=my_networks.Net", "got 'my_networks.Net'. For your own, type model=module model.path=my_networks.Net"),
    (
        "model=module model.args.width=8",
        "model.args has no option 'width'; it is a single value: type model.args=VALUE, or 'model.args={width: VALUE}'",
    ),
    ("eval.evry=2", "eval has no option 'evry'; its options are every, clients_every, clients_sample"),
    ("callback.figure=null", "callback has no option 'figure'; its options are journal, progress, summary, figures"),
    ("seed.x=3", "seed has no option 'x'; it is a single value: type seed=VALUE"),
    ("dataset=mnist dataset.columns.image=a", "no option 'image'; it is a single value: type dataset.columns=VALUE"),
    ("selctor=flash", "there is no option 'selctor'; there are agg, attack, augmentation, availability"),
    ("selctor=flash", "did you mean selector?"),
    ("selector=flsh", "did you mean selector=flash? selector must be one of "),
    ("selector=FLASH", "did you mean selector=flash? selector must be one of "),
    ("heterogeneity=dirichlet", "got 'dirichlet'. There is partition=dirichlet"),
    ("hydra/launcher=slrm", "did you mean hydra/launcher=slurm? hydra/launcher must be one of "),
    ("agg=term agg.weighting=sampls", "got 'sampls'; did you mean samples?"),
    ("+foo=1", "there is no option 'foo'; there are agg"),
    ("+eval.foo=1", "eval has no option 'foo'"),
    ("+trainer.foo=1", "trainer has no option 'foo'; its options are accelerator, devices, num_nodes, threads"),
    ("selector=best", f"selector must be one of {', '.join(SELECTORS)}, got 'best'"),
    ("hydra/launcher=best", "hydra/launcher must be one of basic, "),
    ("selector=[random,best]", f"selector must be one of {', '.join(SELECTORS)}, got 'best'"),
    ("selector=[random,flash]", "selector must be one of the choices in configs/selector, got several"),
    ("selector=random,flash", "selector=random,flash: several values are a sweep, put -m first"),
    ("seed=range(3)", "seed=range(3): several values are a sweep"),
    ("selector=ucb_cs +selector.discount=0.5", "selector.discount exists already: leave out the +"),
    ("+deadline=fixed", "deadline is chosen already: leave out the +"),
    ("~selector.foo", "~selector.foo deletes an option that does not exist"),
    ("~server=momentum", "~server=momentum deletes a choice that the config does not have"),
    ("seed=[1,2", "can't read 'seed=[1,2': type name=value"),
    ("seed", "can't read 'seed'"),
    ("=3", "can't read =3"),
    ("seed=${foo}", "'foo' not found"),
    (
        "model=resnet18_gn model.norm=batch client.batch=1",
        "client.batch=1 leaves batch norm a single value per channel",
    ),
    # nothing but a class that has what its group needs, built whole
    ("+selector._partial_=true", "selector has no option '_partial_'; its only option is weights"),
    ("selector=ucb_cs +selector._args_=[1]", "selector has no option '_args_'; its options are discount, index"),
    ("objective=propfair +objective.base._partial_=true", "objective.base has no option '_partial_'"),
    ("selector._target_=os.system", "selector._target_ must be a class, got 'os.system'"),
    ("partition=iid partition._target_=os.abort", "partition._target_ must be a class, got 'os.abort'"),
    (
        "heterogeneity=iid partition._target_=fedcohort.label_noise.none.NoNoise",
        "partition._target_ must be a class that inherits fedcohort.partition.base.Partition, got",
    ),
    (
        "availability._target_=builtins.object",
        "availability._target_ must be a class that inherits fedcohort.availability.base.Availability",
    ),
    ("agg._target_=builtins.dict", "agg._target_ must be a class that inherits fedcohort.agg.base.Aggregator"),
    (
        "~selector._target_",
        "selector._target_ must be a class that inherits fedcohort.selector.base.Selector, got",
    ),
    (
        "logger._target_=builtins.dict",
        "logger._target_ must be a class that inherits fedcohort.record.observer.Observer",
    ),
    ("+selector@x=flash", "there is no option 'x'; there are agg"),
    # more than anybody has memory or time for
    ("dataset=synthetic dataset.min_samples=100000000", "dataset.min_samples must be smaller: 50 clients of about"),
    (
        "dataset=synthetic clients=100000000",
        "must be smaller: 100000000 clients of about 453 samples exceed 50000000",
    ),
    ("dataset=synthetic dataset.beta=1e308", "dataset.beta must be a number in [0, 1e9], got 1e+308"),
    (
        "model=mlp model.hidden=[1000000000000]",
        "75,000,000,000,010 parameters for 10 classes needs at least",
    ),
    ("engine.slices=99999999999", "engine.slices must be an integer in [1, 100000], got 99999999999"),
    # a user's own data
    ("dataset=folder dataset.path='~nobody-here/x'", "dataset.path=~nobody-here/x: there is no such file or folder"),
    (
        "dataset=folder dataset.n_classes=1000000000000",
        "dataset.n_classes must be an integer in [2, 100000] or null, got",
    ),
    ("dataset=folder dataset.client=site partition=dirichlet", "dataset.client=site has no effect with partition="),
    (
        "dataset=folder dataset.client=site experiment=drift",
        "has no effect with partition=label_shards, which makes the clients: set hetero",
    ),
    (
        "dataset=folder partition.fraction=0.3",
        "partition=iid has no option 'fraction'; it has no options; 'fraction' is an option of partition=",
    ),
    # parts inside of parts
    (
        "objective@objective.base=gce",
        "objective@objective.base has no effect: no chosen component contains another one, as objective=",
    ),
    ("objective=propfair objective@objective.base=best", "objective@objective.base must be one of ce, "),
    ("objective=propfair objective.base.q=1", "objective.base has no option 'q'; it has no options"),
    ("objective=propfair objective@objective.base=propfair", "objective.base must be an objective other than propfair"),
    ("objective=propfair objective@objective.base=flash_robust", "objective.M must be above 16, the largest value"),
    ("agg=feddf proxy=dataset dataset@proxy.source=cmnist", "dataset=cmnist also defines the clients"),
    ("agg=feddf proxy=dataset dataset@proxy.source=best", "dataset@proxy.source must be one of celeba, cifar10"),
    ("agg=feddf proxy=dataset dataset@proxy.source=folder", "choose another dataset, or proxy=folder to read a folder"),
    ("agg=feddf proxy=dataset", "proxy=dataset (dataset@proxy.source=digits): the inputs are samples of the clients"),
    ("agg=feddf proxy=client_heldout proxy.n=9999", "proxy.n must be at most"),
    # nothing where something must be
    *((f"{group}=null", f"{group} must be one of ") for group in ("selector", "agg", "trainer", "logger")),
    ("~selector", "selector must be one of the choices in configs/selector, got nothing"),
    ("~deadline", "deadline must be one of the choices in configs/deadline, got nothing"),
    ("~callback", "callback must be one of the choices in configs/callback, got nothing"),
    ("~seed", "~seed removes an option that the config does not have"),
    ("~eval.every", "~eval.every removes an option that the config does not have"),
    ("~requires", "requires is set by aliases such as agg=fedavgm: leave it out"),
    *(
        (f"{name}=null", f"{name} must be")
        for name in ("seed", "cohort", "rounds", "resume", "split", "eval", "engine")
    ),
    ("paths.logs=null", "paths.logs must be a text that is not empty, got None"),
    ("paths=null", "paths.logs"),
    ("clients=null cohort=null", "cohort must be an integer in [1, inf), got None"),
    ("selector=random clients=null", "clients must be an integer in"),
    ("trainer.devices=null", f"trainer.devices must be an integer in [1, {MAX_THREADS}] or auto (8 for each of the "),
    ("model.hidden=null", "model.hidden must be a list of integers in [1, inf), got None"),
    ("logger.tracking_uri=5", "logger.tracking_uri must be a text that is not empty or null, got 5"),
    # out of the range
    (
        "trainer.devices=1000000",
        f"trainer.devices must be an integer in [1, {MAX_THREADS}] or auto (8 for each of the ",
    ),
    ("trainer.threads=1000000", f"trainer.threads must be an integer in [1, {MAX_THREADS}] (8 for each of the "),
    ("trainer.threads=2 trainer.devices=2", "trainer.threads must be 1 where trainer.devices=2 forks 2 processes"),
    ("model.hidden=[200,0]", "model.hidden must be a list of integers in [1, inf), got [200, 0]"),
    ("client.milestones=[1.5]", "client.milestones must be a list of integers in [1, inf), got [1.5]"),
    ("callback.progress.lines_every=0", "callback.progress.lines_every must be an integer in [1, inf), got 0"),
    ("logger.every_s=-1", "logger.every_s must be a number in [0, inf), got -1"),
    ("client.lr=1e308", "client.lr must be a number in (0, 1e30], got 1e+308"),
    ("paths.logs=", "paths.logs must be a text that is not empty, got ''"),
    (f"paths.logs={__file__}", "paths.logs must be a writable folder"),
    (f"paths.logs={__file__}/logs", "paths.logs must be a writable folder"),
    ("selector=powd selector.candidates=9", "selector.candidates must be an integer in [10, 50], from the cohort to"),
    ("selector=powd selector.candidates=51", "all clients, or null, got 51"),
    # legal alone
    ("agg=fedprox deadline.partial_work=false", "agg=fedprox stands for deadline.partial_work=true, but"),
    (
        "agg=fedprox deadline=over_commit",
        "agg=fedprox stands for deadline.partial_work=true, but deadline=over_commit has no option partial_work",
    ),
    ("agg=fedprox deadline=fixed deadline.partial_work=false", "but deadline.partial_work=false was requested"),
]


@pytest.mark.parametrize(("overrides", "line"), CASES)
def test_an_error_is_one_line_that_names_the_mistake(tmp_path: Path, overrides: str, line: str) -> None:
    message = refusal(tmp_path, *overrides.split())
    assert line in message
    assert "\n" not in message
    assert not list(tmp_path.iterdir())


@pytest.fixture
def notices(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The warnings of a run."""
    lines: list[str] = []
    monkeypatch.setattr(logging.getLogger("fedcohort"), "warning", lambda text, *facts: lines.append(text % facts))
    return lines


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        (
            ("agg=fedprox",),
            "no effect with deadline=wait_for_all, where all clients finish; agg=fedprox is intended for use with",
        ),
        (("deadline.partial_work=true",), "deadline.partial_work=true has no effect with deadline=wait_for_all"),
        (("agg=fedprox", "deadline=fixed"), None),
        (
            ("agg=fedprox", "deadline=fixed", "client.epochs=1"),
            "no effect with client.epochs=1, which can't be done in p",
        ),
        (("proxy=noise",), "proxy=noise has no effect: agg=fedavg doesn't read it"),
        (
            ("agg=rhfl", "agg.mode=weights_only", "selector=full"),
            "is FedAvg weighted by RHFL's client confidence, not RHFL",
        ),
        (("objective=propfair", "objective.M=0.2"), "minimise objective.base with 5 times the learning rate"),
        (("agg=feddf", "agg.steps=2", "proxy=noise"), None),
        (("deadline=fixed", "deadline.k=0.0001"), "round 1: none of the 4 selected clients was done"),
        (("availability=bernoulli", "availability.p=0.0001"), None),  # no client selected: no client is late
    ],
)
def test_an_option_without_effect_gives_one_notice(
    tmp_path: Path, notices: list[str], overrides: tuple[str, ...], line: str | None
) -> None:
    run_training(tmp_path, *overrides)
    assert len(notices) == (line is not None)
    assert line is None or line in notices[0]
