"""What a user mistypes ends in one line that names it, and nothing is written; the whole way but for the process."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from fedcohort.errors import OptionError
from fedcohort.host import cores
from fedcohort.startup import run
from fedcohort.startup.assemble import LIGHT
from fedcohort.startup.refusals import LOST, check_sweep, check_words, explained, in_one_line
from run_harness import go, made
from yaml_words import CONFIGS, ROOT


def refusal(logs: Path, *words: str) -> str:
    """The line for `python train.py <words>`."""
    try:
        run.run(made(f"paths.logs={logs}", *words))
    except Exception as error:
        line = explained(error, words, CONFIGS)
        if line is None:
            raise
        return line
    raise AssertionError(f"{words} ran")


MOST = 8 * cores.available()
WORDS = sorted(path.stem for path in (CONFIGS / "selector").glob("*.yaml"))
CASES = [
    # an option, a group or a word that there is not
    (
        "selector=ucb_cs selector.discont=0.5",
        "selector=ucb_cs has no option 'discont'; its options are discount, index",
    ),
    ("client.LR=1", "client=sgd has no option 'LR'; its options are lr, decay"),
    ("dataset.path=data", "dataset=digits has no option 'path'; it has none"),
    ("eval.evry=2", "eval has no option 'evry'; its options are every, clients_every, clients_sample"),
    ("callback.figure=null", "callback has no option 'figure'; its options are journal, progress, summary, figures"),
    ("seed.x=3", "seed has no option 'x'; it has none"),
    ("selctor=flash", "there is no option 'selctor'; there are agg, attack, availability"),
    ("selctor=flash", "did you mean selector?"),
    ("+foo=1", "there is no option 'foo'; there are agg"),
    ("+eval.foo=1", "eval has no option 'foo'"),
    ("+trainer.foo=1", "trainer has no option 'foo'; its options are accelerator, devices, num_nodes, threads"),
    ("selector=best", f"selector must be one of {', '.join(WORDS)}, got 'best'"),
    ("hydra/launcher=best", "hydra/launcher must be one of basic, "),
    ("selector=[random,best]", f"selector must be one of {', '.join(WORDS)}, got 'best'"),
    ("selector=[random,flash]", "selector must be one of the words in configs/selector, got several"),
    ("selector=random,flash", "selector=random,flash: several values are a sweep, put -m first"),
    ("seed=range(3)", "seed=range(3): several values are a sweep"),
    ("selector=ucb_cs +selector.discount=0.5", "selector.discount is there already: leave out the +"),
    ("+deadline=fixed", "deadline is chosen already: leave out the +"),
    ("~selector.foo", "~selector.foo deletes what is not there"),
    ("~server=momentum", "~server=momentum deletes what was not chosen"),
    ("seed=[1,2", "can't read 'seed=[1,2': type name=value"),
    ("seed", "can't read 'seed'"),
    ("=3", "can't read =3"),
    ("seed=${foo}", "'foo' not found"),
    # nothing but a class that has what its group needs, built whole
    ("+selector._partial_=true", "selector has no option '_partial_'; its options are weights"),
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
    ("dataset=synthetic dataset.min_samples=100000000", "dataset.min_samples must be such that 50 clients of about"),
    (
        "dataset=synthetic clients=100000000",
        "must be such that 100000000 clients of about 453 samples come to 50000000",
    ),
    ("dataset=synthetic dataset.beta=1e308", "dataset.beta must be a number in [0, 1e9], got 1e+308"),
    ("model=mlp model.hidden=[1000000000000]", "model=mlp: there is no memory for so large a network"),
    ("engine.slices=99999999999", "engine.slices must be an integer in [1, 100000], got 99999999999"),
    # a user's own data
    ("dataset=folder dataset.path='~nobody-here/x'", "dataset.path=~nobody-here/x can't be read"),
    (
        "dataset=folder dataset.n_classes=1000000000000",
        "dataset.n_classes must be an integer in [2, 100000] or null, got",
    ),
    ("dataset=folder dataset.client=site partition=dirichlet", "dataset.client=site names the clients, and partition="),
    ("dataset=folder dataset.client=site experiment=drift", "and partition=label_shards makes others: choose hetero"),
    ("dataset=folder partition.fraction=0.3", "partition=iid has no option 'fraction'; it has none"),
    # parts inside of parts
    ("objective@objective.base=gce", "objective@objective.base: no chosen word has this part; objective=propfair"),
    ("objective=propfair objective@objective.base=best", "objective@objective.base must be one of ce, "),
    ("objective=propfair objective.base.q=1", "objective.base has no option 'q'; it has none"),
    ("objective=propfair objective@objective.base=propfair", "objective.base must be an objective other than propfair"),
    ("objective=propfair objective@objective.base=flash_robust", "objective.M must be above 16, what"),
    ("agg=feddf proxy=dataset dataset@proxy.source=cmnist", "dataset=cmnist chooses clients too"),
    ("agg=feddf proxy=dataset dataset@proxy.source=best", "dataset@proxy.source must be one of cmnist, digits"),
    ("agg=feddf proxy=dataset dataset@proxy.source=folder", "part of another word (proxy=folder reads a folder)"),
    ("agg=feddf proxy=dataset", "proxy=dataset (dataset@proxy.source=digits): the inputs are the clients' own"),
    ("agg=feddf proxy=client_heldout proxy.n=9999", "proxy.n must be at most"),
    # nothing where something must be
    *((f"{group}=null", f"{group} must be one of ") for group in ("selector", "agg", "trainer", "logger")),
    ("~selector", "selector must be one of the words in configs/selector, got nothing"),
    ("~callback", "callback must be one of the words in configs/callback, got nothing"),
    ("~seed", "seed is missing: leave out ~seed"),
    ("~eval.every", "eval.every is missing: leave out ~eval.every"),
    ("~requires", "requires is filled by aliases such as agg=fedavgm: leave it out"),
    *(
        (f"{name}=null", f"{name} must be")
        for name in ("seed", "cohort", "rounds", "resume", "split", "eval", "engine")
    ),
    ("paths.logs=null", "paths.logs must be a text that is not empty, got None"),
    ("paths=null", "paths.logs"),
    ("clients=null cohort=null", "cohort must be an integer in [1, inf), got None"),
    ("selector=random clients=null", "clients must be an integer in"),
    ("trainer.devices=null", f"trainer.devices must be an integer in [1, {MOST}] or auto (8 for each of the "),
    ("model.hidden=null", "model.hidden must be a list of integers in [1, inf), got None"),
    ("logger.tracking_uri=5", "logger.tracking_uri must be a text that is not empty or null, got 5"),
    # out of the range
    ("trainer.devices=1000000", f"trainer.devices must be an integer in [1, {MOST}] or auto (8 for each of the "),
    ("trainer.threads=1000000", f"trainer.threads must be an integer in [1, {MOST}] (8 for each of the "),
    ("trainer.threads=2 trainer.devices=2", "trainer.threads must be 1 where trainer.devices=2 forks 2 processes"),
    ("model.hidden=[200,0]", "model.hidden must be a list of integers in [1, inf), got [200, 0]"),
    ("client.milestones=[1.5]", "client.milestones must be a list of integers in [1, inf), got [1.5]"),
    ("callback.progress.lines_every=0", "callback.progress.lines_every must be an integer in [1, inf), got 0"),
    ("logger.every_s=-1", "logger.every_s must be a number in [0, inf), got -1"),
    ("client.lr=1e308", "client.lr must be a number in (0, 1e30], got 1e+308"),
    ("paths.logs=", "paths.logs must be a text that is not empty, got ''"),
    (f"paths.logs={__file__}", "paths.logs must be a folder that can be written"),
    (f"paths.logs={__file__}/logs", "paths.logs must be a folder that can be written"),
    ("selector=powd selector.candidates=9", "selector.candidates must be an integer in [10, 50], from the cohort to"),
    ("selector=powd selector.candidates=51", "all clients, or null, got 51"),
    # legal alone
    ("agg=fedprox deadline.partial_work=false", "agg=fedprox stands for deadline.partial_work=true, but"),
    ("agg=fedprox deadline=fixed deadline.partial_work=false", "but deadline.partial_work=false was asked for"),
]


@pytest.mark.parametrize(("words", "line"), CASES)
def test_a_mistake_is_one_line_that_names_it(tmp_path: Path, words: str, line: str) -> None:
    said = refusal(tmp_path, *words.split())
    assert line in said
    assert "\n" not in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("selector=../agg/fedavg", f"selector must be one of {', '.join(WORDS)}, got '../agg/fedavg'"),
        ("selector=/etc/passwd", "selector must be one of"),
        ("+selector@x=./flash", "selector@x must be one of"),
        ("agg=[fedavg,../selector/random]", "agg must be one of"),
        ("selector=random,../agg/fedavg", "selector must be one of"),
        ("selector=random.yaml", "selector must be one of"),
        ("hydra/launcher=../../train", "hydra/launcher must be one of"),
        ("+=", "can't read '+=': type name=value"),
        ("=3", "can't read '=3': type name=value"),
        (f"hydra.run.dir={__file__}/x", "hydra.run.dir must be a folder that can be written, got"),
        ("hydra.sweep.dir=/proc/x", "hydra.sweep.dir must be a folder that can be written, got"),
    ],
)
def test_what_hydra_takes_for_a_path_is_refused_before_it_does(typed: str, line: str) -> None:
    """`../agg/fedavg` was loaded as the selector."""
    with pytest.raises(OptionError) as caught:
        check_words(["seed=1", typed], CONFIGS)
    assert str(caught.value).startswith(line)


def test_words_that_are_none_of_ours_are_hydras() -> None:
    check_words(["-m", "--config-dir=../x", "seed=..", "name=../x", "selector=glob(*)", "experiment=mine/a"], CONFIGS)


def test_a_flag_of_hydras_that_stands_alone() -> None:
    said = explained(ValueError("The --resolve flag can only be used in conjunction with --cfg or --help"), [], CONFIGS)
    assert said == "The --resolve flag can only be used in conjunction with --cfg or --help"


def test_a_config_that_names_no_word_is_named(tmp_path: Path) -> None:
    """As a user's own configs/experiment/mine.yaml would, with a word that is gone."""
    from hydra.errors import MissingConfigException

    error = MissingConfigException("In 'experiment/mine': Could not find 'selector/gone'\n\nAvailable", "", ["flash"])
    said = explained(error, ["experiment=mine"], CONFIGS)
    assert said == "configs/experiment/mine.yaml: selector must be one of flash, got 'gone'"


@pytest.mark.parametrize("kind", LOST)
def test_a_job_that_was_lost_is_one_line(kind: str) -> None:
    """As submitit and joblib raise it, with the job's whole log or an explanation behind."""
    error = type(kind, (RuntimeError,), {})(
        "Job 5_0 with path /x\nhas no output (state: FAILED)\n---------\nTraceback ..."
    )
    assert explained(error, [], CONFIGS) == "a job was lost: Job 5_0 with path /x has no output (state: FAILED)"


def test_other_errors_keep_their_traceback(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HYDRA_FULL_ERROR", raising=False)

    def broken() -> None:
        raise ValueError("a bug")

    def mistaken() -> None:
        raise OptionError("seed must be 1")

    with pytest.raises(ValueError, match="a bug"):
        in_one_line(broken, [], CONFIGS)
    assert in_one_line(mistaken, [], CONFIGS) == 2
    assert capsys.readouterr().err == "seed must be 1\n"
    assert in_one_line(lambda: None, [], CONFIGS) == 0
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    with pytest.raises(OptionError):
        in_one_line(mistaken, [], CONFIGS)


def test_a_sweep_on_slurm_says_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["-m", "hydra/launcher=slurm", "seed=0,1"]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(OptionError, match=r'pip install --constraint constraints.txt --editable "\.\[slurm\]"'):
        check_sweep(words)
    with pytest.raises(OptionError, match=r'joblib needs a plugin: .*"\.\[parallel\]"'):
        check_sweep(["-m", "hydra/launcher=joblib"])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OptionError, match="needs SLURM's sbatch and srun on the PATH"):
        check_sweep(words)
    for name in ("sbatch", "srun"):
        (tmp_path / name).touch(mode=0o755)
    check_sweep(words)
    with pytest.raises(OptionError, match=r"paths.logs must be a folder"):
        check_sweep([*words, f"paths.logs={__file__}"])  # Hydra would make its folder in there before any job


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The warnings of a run."""
    lines: list[str] = []
    monkeypatch.setattr(logging.getLogger("fedcohort"), "warning", lambda text, *facts: lines.append(text % facts))
    return lines


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("agg=fedprox",), "no effect with deadline=wait_for_all, where everybody finishes; agg=fedprox is meant with"),
        (("deadline.partial_work=true",), "deadline.partial_work=true has no effect with deadline=wait_for_all"),
        (("agg=fedprox", "deadline=fixed"), None),
        (("proxy=noise",), "proxy=noise has no effect: agg=fedavg doesn't read it"),
        (("agg=rhfl", "agg.mode=weights_only", "selector=full"), "is FedAvg under RHFL's client confidence, not RHFL"),
        (("objective=propfair", "objective.M=0.2"), "minimise their base objective with 5 times the learning rate"),
        (("agg=feddf", "agg.steps=2", "proxy=noise"), None),
        (("deadline=fixed", "deadline.k=0.0001"), "round 1: none of the 4 selected clients was done"),
        (("availability=bernoulli", "availability.p=0.0001"), None),  # nobody selected: nobody is late
    ],
)
def test_what_does_nothing_is_said_once(
    tmp_path: Path, said: list[str], words: tuple[str, ...], line: str | None
) -> None:
    go(tmp_path, *words)
    assert len(said) == (line is not None)
    assert line is None or line in said[0]


def train(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "train.py", *words], cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_process_says_the_line_and_nothing_else(tmp_path: Path) -> None:
    done = train("selector=ucb_cs", "selector.discont=0.5", f"paths.logs={tmp_path}")
    line = "selector=ucb_cs has no option 'discont'; its options are discount, index, sigma, tie\n"
    assert (done.returncode, done.stderr, done.stdout) == (2, line, "")


def test_help_says_what_it_is_and_where_ranges_stand() -> None:
    done = train("--help", "selector=flash")
    assert done.returncode == 0
    words = f"selector: {', '.join(WORDS[:3])}"
    for part in ("resume=true", "-m selector=", "configs/<group>/<word>.yaml", words, "gamma_scale"):
        assert part in done.stdout


def test_what_is_refused_first_imports_nothing_slow() -> None:
    code = f"""
import sys
from hydra import compose, initialize_config_dir
from fedcohort.startup import assemble, refusals
from fedcohort.startup import run
with initialize_config_dir({str(CONFIGS)!r}, version_base="1.3"):
    cfg = compose("train", return_hydra_config=True)
made = assemble.composed(cfg, cfg.hydra.runtime.choices, ())
for group in {LIGHT}:
    assemble.part(made, group)
run.watchers_of(made)
found = {{"torch", "lightning", "mlflow", "matplotlib"}} & sys.modules.keys()
assert not found, found
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
