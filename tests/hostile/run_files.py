"""Damaged files of run folders: each command names the file, or trains again what can be trained again to the bit."""

import logging
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product
from pathlib import Path

from config_options import CONFIGS
from fedcohort.command import compare, figures, replay, sync
from fedcohort.host import messages
from fedcohort.record import history, journal
from fedcohort.record.folder import MANIFEST_FILES
from fedcohort.startup import command_line, run
from fedcohort.startup.compose import Composition
from fedcohort.types import RoundReport
from hostile.damage import DAMAGES, Damage, copy_from, flip_in_line, replace_by, swap, swap_lines
from hostile.forked import fork
from hostile.harness import Answer, Case
from process_kills import kill_self, run_in_child
from run_harness import collecting_overrides, compose_overrides

OVERRIDES: tuple[str, ...] = (
    "callback=default",
    "callback.figures=null",
    "callback.progress=null",
    "rounds=5",
    "split.limit=240",
)
OVERRIDES += ("checkpoint.every=2", "selector=oort", "engine=sequential", "eval.average=ema")
KILLED_AT = 4  # the step whose line is the last: the checkpoint is of round 4, the one before it of round 2
ROUNDS_AHEAD = 3  # where the newest checkpoint is removed, steps from here on are ahead of the one before it


@cache
def templates() -> Path:
    """Make a folder of `finished`, `other` (another seed) and `killed`, `killed_other` runs, made once."""
    home = Path(tempfile.mkdtemp(prefix="run_files_"))
    for name, seed, step in (
        ("finished", 0, 0),
        ("other", 1, 0),
        ("killed", 0, KILLED_AT),
        ("killed_other", 1, KILLED_AT),
    ):
        run_in_child(partial(_train, home / name, seed, step))
    return home


def at_work() -> Path:
    """Return the folder of the run of each case in turn: always the same, so that its config is composed once."""
    return templates() / "at_work"


def list_overrides(logs: Path, seed: int = 0) -> tuple[str, ...]:
    return tuple(
        override for override in collecting_overrides(logs, *OVERRIDES, f"seed={seed}") if "collect" not in override
    )


def _train(logs: Path, seed: int, killed_at: int) -> None:
    """Train; killed_at: the step after whose commit the process dies, 0 for none."""
    original = journal.commit_step

    def commit(file: object, report: RoundReport, *arguments: object) -> str:
        if killed_at and report.step == killed_at + 1:
            kill_self()
        return original(file, report, *arguments)  # type: ignore[arg-type]

    journal.commit_step = commit  # type: ignore[assignment]
    run.run(compose_overrides(*list_overrides(logs, seed)))


def run_of(logs: Path) -> Path:
    return next((logs / "runs").iterdir())


def _print_output() -> None:
    logging.getLogger("fedcohort").handlers.clear()
    messages.log_to_terminal()


@cache
def compose_resumed_run() -> Composition:
    return compose_overrides(*list_overrides(at_work()), "resume=true")


def resume(logs: Path) -> Answer:
    composed = compose_resumed_run()

    def work() -> int:
        _print_output()
        return command_line.run_with_one_line_errors(lambda: int(not run.run(composed)), ("resume=true",), CONFIGS)

    return fork(work)


def verb(main: Callable[..., int], *arguments: str) -> Answer:
    def work() -> int:
        _print_output()
        return command_line.run_with_one_line_errors(lambda: main(arguments), arguments, CONFIGS)

    return fork(work)


COMMANDS: dict[str, Callable[[Path], Answer]] = {
    "resume": resume,
    "replay": lambda logs: verb(partial(replay.main, configs=CONFIGS), str(run_of(logs))),
    "figures": lambda logs: verb(figures.main, str(run_of(logs))),
    "sync": lambda logs: verb(sync.main, str(run_of(logs)), f"tracking_uri=sqlite:///{logs}/sent.db"),
}


def call_on_damaged_run(template: str, name: str, damage: Damage, command: str, folder: Path) -> Answer:
    """Copy a run, damage its file `name` ("" for the folder), and call the command."""
    logs = at_work()
    shutil.rmtree(logs, ignore_errors=True)
    shutil.copytree(templates() / template, logs, symlinks=True)
    damage(run_of(logs) / name)
    return COMMANDS[command](logs)


def compare_with_uninterrupted(folder: Path) -> str:
    """Return what a resumed run lacks of one that was never damaged."""
    folder_of_run, expected = run_of(at_work()), run_of(templates() / "finished")
    if history.read_history(folder_of_run).fingerprints != history.read_history(expected).fingerprints:
        return "other weights than an uninterrupted run"
    if not history.read_history(folder_of_run).metrics.equals(history.read_history(expected).metrics):
        return "other metrics than an uninterrupted run"
    if not history.read_history(folder_of_run).clients().equals(history.read_history(expected).clients()):
        return "another per-client table than an uninterrupted run"
    return ""


def make_refusal(template: str, file: str, fault_name: str, damage: Damage, command: str) -> Case:
    name = f"{command}, {template} run: {file} {fault_name}"
    return Case(name, partial(call_on_damaged_run, template, file, damage, command), (Path(file).name,))


def make_repair(file: str, fault_name: str, damage: Damage) -> Case:
    """Damage behind the checkpoint of round 2, the only one of the killed run."""

    def damage_older_checkpoint(path: Path) -> None:
        run = path.parents[1] if path.parent.name == "clients" else path.parent
        (run / "previous.ckpt").replace(run / "last.ckpt")
        damage(path)

    run_it = partial(call_on_damaged_run, "killed", file, damage_older_checkpoint, "resume")
    return Case(
        f"resume, ahead of the checkpoint: {file} {fault_name}",
        run_it,
        ("are trained again",),
        True,
        compare_with_uninterrupted,
    )


def _list_finished_runs() -> Iterator[Case]:
    copy_damage: dict[str, Damage] = {"another run's": lambda path: copy_from(run_of(templates() / "other"), path)}
    for file, (fault_name, damage) in product((*MANIFEST_FILES, "manifest.json"), {**DAMAGES, **copy_damage}.items()):
        if (file, fault_name) in (("manifest.json", "missing"), ("manifest.json", "without its last byte")):
            continue  # as in a run of an older version; a line end
        yield make_refusal("finished", file, fault_name, damage, "resume")
    files_by_command: dict[str, tuple[str, ...]] = {
        "replay": ("journal.jsonl", "info.json", "info.npz", "clients.parquet")
    }
    files_by_command |= {"figures": (*files_by_command["replay"], "summary.json"), "sync": MANIFEST_FILES}
    for command, files in files_by_command.items():
        damage_names = ("truncated", "a bit of its middle", "a bit of its footer", "a named pipe")
        for file, fault_name in product(files, damage_names):
            yield make_refusal("finished", file, fault_name, DAMAGES[fault_name], command)
    yield make_refusal("finished", "manifest.json", "of a newer format", partial(_reformat), "resume")


def _reformat(path: Path) -> None:
    path.write_text(path.read_text().replace('"format": 1', '"format": 7'))


def _list_killed_runs() -> Iterator[Case]:
    """Without a manifest, each file is checked by its reader."""
    journal_file, client_file = history.JOURNAL_FILE, "clients/000002.parquet"
    copy_damage: dict[str, Damage] = {
        "another run's": lambda path: copy_from(run_of(templates() / "killed_other"), path)
    }
    client_damages: dict[str, Damage] = {**DAMAGES, **copy_damage, "another round's": partial(swap, "000003.parquet")}
    for fault_name, damage in client_damages.items():
        yield make_refusal("killed", client_file, fault_name, damage, "resume")
    journal_damages: dict[str, Damage] = {**DAMAGES, **copy_damage, "with two lines swapped": swap_lines}
    for fault_name, damage in journal_damages.items():
        if fault_name not in (
            "without its last byte",
            "a byte more",
            "a bit of its footer",
        ):  # a torn last line is none
            yield make_refusal("killed", journal_file, fault_name, damage, "resume")
    for step in range(5):
        yield make_refusal(
            "killed", journal_file, f"a digit of round {step}", partial(flip_in_line, number=step), "resume"
        )
    for file, fault_name in product(("info.json", "starts.jsonl"), ("a bit of its middle", "a folder", "a named pipe")):
        yield make_refusal("killed", file, fault_name, DAMAGES[fault_name], "resume")
    for fault_name in (
        "truncated",
        "a bit of its header",
        "a bit of its middle",
        "a bit of its footer",
        "emptied",
        "a folder",
    ):
        yield make_refusal("killed", "last.ckpt", fault_name, DAMAGES[fault_name], "resume")
    yield make_refusal("killed", "last.ckpt", "another run's", copy_damage["another run's"], "resume")
    yield make_refusal("killed", "clients", "a file", partial(replace_by, lambda path: path.write_text("")), "resume")
    yield make_refusal("killed", "run.lock", "a named pipe", DAMAGES["a named pipe"], "resume")
    yield make_refusal("killed", "run.log", "a named pipe", DAMAGES["a named pipe"], "resume")
    for command, file in product(("replay", "figures", "sync"), (journal_file, "info.json")):
        yield make_refusal("killed", file, "a bit of its middle", DAMAGES["a bit of its middle"], command)
    for command in ("replay", "figures"):
        yield make_refusal("killed", client_file, "a bit of its middle", DAMAGES["a bit of its middle"], command)
        yield make_refusal("killed", client_file, "missing", DAMAGES["missing"], command)
    for fault_name in ("truncated", "a bit of its middle", "emptied"):
        case = make_refusal("killed", "status.json", fault_name, DAMAGES[fault_name], "resume")
        yield Case(case.name, case.run, ("status.json is damaged and is ignored",), True, compare_with_uninterrupted)
    for fault_name in ("truncated", "a bit of its middle", "a bit of its footer", "emptied", "missing"):
        yield make_repair(f"clients/00000{ROUNDS_AHEAD}.parquet", fault_name, DAMAGES[fault_name])
    yield make_repair(f"clients/00000{ROUNDS_AHEAD}.parquet", "another round's", partial(swap, "000004.parquet"))
    for step in (ROUNDS_AHEAD, ROUNDS_AHEAD + 1):
        yield make_repair(journal_file, f"a digit of round {step}", partial(flip_in_line, number=step))


def _database(damage: Damage, folder: Path) -> Answer:
    """Compare from a database that was MLflow's."""
    path = folder / "mlflow.db"
    shutil.copy(make_database_folder() / "mlflow.db", path)
    damage(path)
    return verb(compare.main, f"tracking_uri=sqlite:///{path}", f"out={folder / 'out'}")


@cache
def make_database_folder() -> Path:
    """Make a folder with a database that has the finished run."""
    folder = Path(tempfile.mkdtemp(prefix="run_files_db_"))
    fork(lambda: sync.main([str(run_of(templates() / "finished")), f"tracking_uri=sqlite:///{folder}/mlflow.db"]))
    return folder


def _list_comparisons() -> Iterator[Case]:
    for fault_name in ("truncated", "a bit of its header", "a folder"):
        yield Case(f"compare: mlflow.db {fault_name}", partial(_database, DAMAGES[fault_name]), ("mlflow.db",))
    empty_database = partial(_database, DAMAGES["emptied"])  # an empty file is a database without experiments
    yield Case("compare: mlflow.db emptied", empty_database, ("experiment must be one of Default",))


def cases() -> list[Case]:
    """List the cases: damaged files of finished runs, of killed ones, and of MLflow's database."""
    return [*_list_finished_runs(), *_list_killed_runs(), *_list_comparisons()]
