"""Compare a selector with random selection by the evaluation protocol, and exchange the results as one file.

fedcohort protocol run selector=mine [level=quick n_jobs=1 launcher=local]
    print the number of missing runs and the time that they take, then do them. If the command is interrupted, repeat
    it and it continues. For each run of the selector there is one of random selection that ends at the same bytes.
fedcohort protocol report selector=mine [level=quick]
    write logs/protocol/mine_quick/README.md, a page, and protocol.json, the file with all of its runs.
fedcohort protocol verify FILE [n_jobs=1]
    repeat the first seed of the method and of random selection in two settings of a protocol.json, and compare the
    runs to the bit. The exit code is 0 if all are equal. A file can't choose the code that is run: the selector must
    be in configs/selector.
fedcohort protocol leaderboard FILE...
    print a table of the methods of several files of one level.

selector=        a selector of configs/selector, or a method of the level's studies
level=quick      quick, standard or full: settings and seeds, in studies/protocol.yaml
n_jobs=1         runs at the same time
launcher=local   local: processes of this machine; slurm: arrays of a cluster; or another installed launcher of Hydra.
                 hydra.launcher.OPTION=VALUE sets its options, such as hydra.launcher.partition=gpu
"""

from collections.abc import Sequence
from pathlib import Path

from fedcohort import ranges, units
from fedcohort.command.arguments import read_options
from fedcohort.console.terminal import print_line, print_markdown
from fedcohort.errors import OptionError
from fedcohort.host import disk
from fedcohort.jobs.launch import LaunchOptions
from fedcohort.record.folder import write_atomically
from fedcohort.study import progress, protocol, protocol_check, protocol_file, results, session
from fedcohort.study.result_files import DONE
from fedcohort.study.runner import StudyRunner

VERB_OPTIONS: dict[str, Sequence[str]] = {"run": ("selector", "level", "n_jobs", "launcher")}
VERB_OPTIONS |= {"report": ("selector", "level"), "verify": ("n_jobs",), "leaderboard": ()}
USAGE_BY_VERB = {"verify": "FILE, one protocol.json", "leaderboard": "FILE..., one protocol.json or more"}
STUDIES_FOLDER, LOGS_FOLDER = Path("studies"), Path("logs")
PAGE_FILE, JSON_FILE, GENERATED_PAGE_MARK = "README.md", "protocol.json", " protocol\n"


def parse_arguments(arguments: Sequence[str]) -> tuple[str, list[Path], dict[str, str], LaunchOptions]:
    """Return the verb, such as run, the files, the options, and how runs are started.

    Raises `OptionError` for an unknown verb or option in `arguments`, a missing selector, or a wrong number of files.
    """
    verb, *typed_arguments = arguments or [""]
    if verb not in VERB_OPTIONS:
        raise OptionError(f"type fedcohort protocol VERB, where VERB is one of {', '.join(VERB_OPTIONS)}")
    protocol_paths = [argument for argument in typed_arguments if "=" not in argument or argument.endswith(".json")]
    launcher_prefix = "hydra.launcher." if verb == "run" else ()
    launcher_options = [argument for argument in typed_arguments if argument.startswith(launcher_prefix)]
    typed_options = [argument for argument in typed_arguments if argument not in (*protocol_paths, *launcher_options)]
    options = {"level": "quick", "n_jobs": "1", "launcher": "local"} | read_options(typed_options, VERB_OPTIONS[verb])
    if {"verify": len(protocol_paths) != 1, "leaderboard": not protocol_paths}.get(
        verb, bool(protocol_paths) or "selector" not in options
    ):
        raise OptionError(f"type fedcohort protocol {verb} {USAGE_BY_VERB.get(verb, 'selector=NAME level=quick')}")
    if "selector" in VERB_OPTIONS[verb]:
        ranges.identifier("selector", options["selector"])
    n_jobs = ranges.parse_integer("n_jobs", options["n_jobs"], "[1, inf)")
    launch = LaunchOptions(options["launcher"], n_jobs, options=launcher_options)
    return verb, [Path(file) for file in protocol_paths], options, launch


def main(arguments: Sequence[str]) -> int:
    """Run, report or verify a method, or print the leaderboard; return 1 for missing or unequal runs, else 0.

    Raises `FedcohortError` if `arguments`, a file or the studies are invalid.
    """
    verb, protocol_paths, options, launch = parse_arguments(arguments)
    configs, protocol_level = Path.cwd() / "configs", options["level"]
    files = [protocol_file.read_protocol(path, STUDIES_FOLDER) for path in protocol_paths]
    if verb == "verify":
        logs = (LOGS_FOLDER / "protocol" / "verify").absolute()
        with session.lock_study(logs, print_line):
            return 0 if protocol_check.verify_protocol_runs(files[0], configs, logs, print_line, launch) else 1
    if verb == "leaderboard":
        from fedcohort.study import protocol_page  # noqa: PLC0415 - scipy

        print_markdown(f"{protocol_page.make_leaderboard(files).markdown()}\n")
        return 0
    parts = protocol.load_protocol_level(STUDIES_FOLDER, protocol_level, options["selector"], configs)
    if verb == "report":
        return _write_protocol_page(parts, protocol_level, configs)
    for part in parts:
        _print_forecast(part, _make_runner(part, configs, launch))
    n_undone_runs = 0
    for part in parts:
        with session.lock_study(_find_logs_folder(part), print_line):
            runner = _make_runner(part, configs, launch)  # under the lock, so that no other process writes the results
            runner.run_conditions(part.list_conditions(), part.seeds)
            n_undone_runs += len(_list_undone_runs(part, runner.find_progress(part.list_conditions(), part.seeds)))
    report_command = f"fedcohort protocol report selector={options['selector']} level={protocol_level}"
    print_line(
        f"not done: {units.format_count(n_undone_runs, 'run')}"
        if n_undone_runs
        else f"all runs are done: {report_command}"
    )
    return 1 if n_undone_runs else 0


def _print_forecast(part: protocol.ProtocolPart, runner: StudyRunner) -> None:
    """Print how many of the protocol's runs in one study, `part`, are missing, and the time that they take."""
    with session.print_warnings_once():
        state_by_run = runner.find_progress(part.list_conditions(), part.seeds).states
    run_keys = [key for key, state in state_by_run.items() if state in progress.UNFINISHED_STATES]
    n_method_runs, n_equal_byte_runs, n_baseline_runs = (
        sum(key[1] == method for key in run_keys) for method in part.methods
    )
    time_left = progress.estimate_time_left(runner.results)
    seconds = time_left.estimate_seconds([key[:2] for key in run_keys]) / runner.launch.n_jobs
    time_text = f"about {units.format_rough_seconds(seconds)}" if seconds else "time not known before the first run"
    baseline = part.study.baseline
    missing_text = (
        f"{n_method_runs} of {part.selector}, {n_equal_byte_runs} of {baseline} at equal bytes, "
        f"{n_baseline_runs} of {baseline}"
    )
    print_line(f"{part.study.name}: missing runs: {missing_text}{f'; {time_text}' if run_keys else ''}")


def _write_protocol_page(parts: Sequence[protocol.ProtocolPart], protocol_level: str, configs: Path) -> int:
    """Write the page and the file with the protocol's results of a method, and return the exit code 0.

    `parts` are the method's runs in each study of `protocol_level`, and `configs` is the folder of the
    config groups. Raises `OptionError` if a run is missing, failed or rejected.
    """
    from fedcohort.study import protocol_page  # noqa: PLC0415 - scipy

    selector, runs_by_part, undone_runs = parts[0].selector, [], list[str]()
    for part in parts:
        runner = _make_runner(part, configs, LaunchOptions())
        with session.print_warnings_once():
            run_progress = runner.find_progress(part.list_conditions(), part.seeds)
        undone_runs += _list_undone_runs(part, run_progress)
        runs_by_part.append((part, runner.results, run_progress.runs))
    if undone_runs:
        raise OptionError(
            f"not done: {units.format_count(len(undone_runs), 'run')}, such as {undone_runs[0]}: type "
            f"fedcohort protocol run selector={selector} level={protocol_level}"
        )
    folder = LOGS_FOLDER / "protocol" / f"{selector}_{protocol_level}"
    disk.reject_foreign_files(folder, (PAGE_FILE, JSON_FILE), PAGE_FILE, GENERATED_PAGE_MARK)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / JSON_FILE, protocol_file.format_protocol(protocol_level, runs_by_part))
    write_atomically(
        folder / PAGE_FILE, protocol_page.format_page(protocol_file.read_protocol(folder / JSON_FILE, STUDIES_FOLDER))
    )
    print_line(f"{folder / PAGE_FILE}\n{folder / JSON_FILE}")
    return 0


def _list_undone_runs(part: protocol.ProtocolPart, run_progress: progress.StudyProgress) -> list[str]:
    state_by_run = run_progress.states.items()
    return [f"{part.study.name} {' '.join(map(str, key))} ({state})" for key, state in state_by_run if state != DONE]


def _make_runner(part: protocol.ProtocolPart, configs: Path, launch: LaunchOptions) -> StudyRunner:
    study_logs = _find_logs_folder(part)
    stored_results = results.load_results(part.study, study_logs)
    return StudyRunner(part.study, stored_results, configs, study_logs, False, print_line, launch=launch)


def _find_logs_folder(part: protocol.ProtocolPart) -> Path:
    return (LOGS_FOLDER / "studies" / part.study.name).absolute()
