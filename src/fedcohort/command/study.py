"""Run a study, a grid of settings x methods x seeds in studies/<name>/study.yaml, and write its report.

fedcohort study run NAME [seeds=0,1 settings=a,b methods=c,d n_jobs=1 launcher=local wait=true keep_runs=false again=]
    do the missing runs. Options are checked before the first run, and each result is stored at once.
    methods=mine adds your own selector of configs/selector, which study.yaml does not name.
fedcohort study status NAME [seeds= settings= methods=]
    show the runs that are done, missing, refused (with the reason) or failed, and the time that is left.
fedcohort study check NAME [seeds= settings= methods= n_jobs=1]
    repeat the first 8 rounds of each condition with the present code, once for each commit that computed rows of it.
    Rows that were computed by code that behaves differently are marked on the pages.
fedcohort study tune NAME [methods= n_jobs=1]
    tune each selector that has a search space in study.yaml with Optuna, on seeds that the study does not use.
    The result is written to tuned.yaml, and is the method <name>_tuned of the study.
fedcohort study report NAME
    write README.md, report.html, map.png, ranks.png and the tables as .csv and .tex, from the present results.
    Runs whose configuration has changed are left out, and named. studies/README.md lists the settings of all studies.
    A study.yaml with `of` is a leaderboard: it has no runs, and ranks the methods of other studies.

seeds=null           those of study.yaml
settings=null        names of settings; null for all
methods=null         names of methods; null for all. The baseline and the bounds are always run with them
n_jobs=1             jobs at the same time
launcher=local       local: processes of this machine; slurm: an array on the cluster; or another installed launcher of
                     Hydra. hydra.launcher.OPTION=VALUE sets its options, such as hydra.launcher.partition=gpu
wait=true            false, with launcher=slurm: submit the jobs and return. `study status` or a second `study run`
                     stores the results of the jobs that have ended.
keep_runs=false      true keeps the folders of the runs, in logs/studies/<name>/runs
again=false          true repeats the runs of another commit, or of code that was not committed, as after a fix. The
                     code must be committed. If the command is interrupted, repeat it and it continues. changed repeats
                     the runs that `check` found to be computed by code that behaves differently
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fedcohort import ranges
from fedcohort.command.arguments import read_options
from fedcohort.console.terminal import print_line
from fedcohort.errors import OptionError
from fedcohort.host.lock import is_locked
from fedcohort.jobs.launch import LaunchOptions
from fedcohort.study import compare_code, leaderboard, progress, results, session
from fedcohort.study.checks import check_option_names, read_seeds
from fedcohort.study.definition import STUDY_FILE, Study, list_conditions
from fedcohort.study.definition_file import load_study
from fedcohort.study.result_files import FAILED, RESULTS_FILE
from fedcohort.study.runner import StudyRunner
from fedcohort.study.user_methods import add_methods_of_runs, add_user_methods

RUN_FILTERS = {"seeds": "null", "settings": "null", "methods": "null"}  # which runs
DEFAULT_OPTIONS = RUN_FILTERS | {
    "n_jobs": "1",
    "launcher": "local",
    "wait": "true",
    "keep_runs": "false",
    "again": "false",
}
VERB_OPTIONS: dict[str, Sequence[str]] = {  # the options of each
    "run": tuple(DEFAULT_OPTIONS),
    "status": tuple(RUN_FILTERS),
    "check": (*RUN_FILTERS, "n_jobs", "launcher"),
    "tune": ("methods", "n_jobs", "launcher"),
    "report": (),
}
STUDIES_FOLDER, LOGS_FOLDER = Path("studies"), Path("logs/studies")


def parse_arguments(arguments: Sequence[str]) -> tuple[str, str, dict[str, str], LaunchOptions]:
    """Return the verb, such as run, the study's name, the options, and how jobs are started.

    Raises `OptionError` for an unknown verb or option in `arguments`.
    """
    if len(arguments) < 2 or arguments[0] not in VERB_OPTIONS or "=" in arguments[1]:
        raise OptionError(f"type fedcohort study VERB NAME, where VERB is one of {', '.join(VERB_OPTIONS)}")
    verb, study_name, *typed_options = arguments
    launcher_options = [argument for argument in typed_options if argument.startswith("hydra.launcher.")]
    typed_options = [argument for argument in typed_options if argument not in launcher_options]
    check_option_names("", {a.partition("=")[0]: a for a in typed_options if "=" in a}, tuple(DEFAULT_OPTIONS))
    options = read_options(typed_options, DEFAULT_OPTIONS)
    if wrong_option := next((f"{name}={v}" for name, v in options.items() if name not in VERB_OPTIONS[verb]), None):
        raise OptionError(
            f"fedcohort study {verb} takes {', '.join(VERB_OPTIONS[verb]) or 'no options'}, got {wrong_option}"
        )
    ranges.identifier("the name of a study", study_name)
    options = DEFAULT_OPTIONS | options
    n_jobs = ranges.parse_integer("n_jobs", options["n_jobs"], "[1, inf)")
    for option_name in ("wait", "keep_runs"):
        ranges.choice(option_name, options[option_name], "true", "false")
    ranges.choice("again", options["again"], "true", "false", "changed")
    launch = LaunchOptions(options["launcher"], n_jobs, options["wait"] == "true", launcher_options)
    return verb, study_name, options, launch


def _read_name_list(option_name: str, names_text: str) -> list[str] | None:
    """Return the names in `names_text`, the value of an option, such as "a,b"; None for "null", which means all names.

    Raises `OptionError` for an empty list.
    """
    listed_names = [name for name in names_text.strip("[]").split(",") if name]
    if not listed_names:
        raise ranges.range_error(option_name, f"one name or more, as {option_name}=a,b, or null for all", names_text)
    return None if names_text == "null" else listed_names


def _read_seeds(study: Study, names_text: str) -> Sequence[int]:
    """Return the seeds in `names_text`, as in "0,1,2"; those of `study` for "null".

    Raises `OptionError` for an invalid seed, and for seeds on which the study is tuned.
    """
    seed_texts = _read_name_list("seeds", names_text)
    if seed_texts is None:
        return study.seeds
    seeds = read_seeds("seeds", [ranges.parse_integer("seeds", seed_text, "[0, inf)") for seed_text in seed_texts])
    if study.search_space is not None and (tuning_seeds := set(seeds) & set(study.search_space.seeds)):
        raise ranges.range_error("seeds", f"seeds that the tuning did not use, unlike {min(tuning_seeds)}", names_text)
    return seeds


def main(arguments: Sequence[str]) -> int:
    """Run, check, tune, report or describe a study; return 1 if a run has failed, else 0.

    Raises `FedcohortError` if `arguments` or the study are invalid.
    """
    verb, study_name, options, launch = parse_arguments(arguments)
    configs, study_logs = Path.cwd() / "configs", (LOGS_FOLDER / study_name).absolute()
    method_names = _read_name_list("methods", options["methods"])
    if leaderboard.is_leaderboard(STUDIES_FOLDER / study_name):
        return _report_leaderboard(verb, study_name, configs)
    study = add_user_methods(load_study(STUDIES_FOLDER / study_name), method_names, configs)
    if verb == "tune":
        return _tune_study(study, method_names, configs, launch)
    if verb == "report":
        return _report_study(study, configs)
    seeds = _read_seeds(study, options["seeds"])
    requested_conditions = list_conditions(study, _read_name_list("settings", options["settings"]), method_names)
    # else the running command stores the results
    may_store_results = verb != "status" or not is_locked(study_logs / session.LOCK_FILE)
    with session.lock_study(study_logs, print_line) if may_store_results else session.print_warnings_once():
        # under the lock, so that no other process writes to it
        stored_results = results.load_results(study, study_logs)
        keeps_runs, rerun_rule = options["keep_runs"] == "true", options["again"]
        runner = StudyRunner(study, stored_results, configs, study_logs, keeps_runs, print_line, rerun_rule, launch)
        if verb == "run":
            runner.run_conditions(requested_conditions, seeds)
        if verb == "check":
            compare_code.compare_with_current_code(runner, requested_conditions, seeds)
        sweep_status_lines = runner.collect_ended_jobs(requested_conditions, seeds) if may_store_results else []
        study_progress = runner.find_progress(requested_conditions, seeds)
    rank_lines = progress.describe_user_method_ranks(study, stored_results)
    print_line(
        "\n".join([progress.describe_runs(study, study_progress, stored_results), *sweep_status_lines, *rank_lines])
    )
    return 1 if verb == "run" and study_progress.count_runs(FAILED) else 0


def _tune_study(study: Study, method_names: Sequence[str] | None, configs: Path, launch: LaunchOptions) -> int:
    if study.search_space is None:
        raise OptionError(
            f"{study.folder / STUDY_FILE} has no option `tune`, which states the tuned options and their seeds: add it"
        )
    from fedcohort.study import tune  # noqa: PLC0415 - Optuna

    for method_name in method_names or ():
        ranges.choice("methods", method_name, *study.search_space.methods)
    study_logs = (LOGS_FOLDER / study.name).absolute()
    with session.lock_study(study_logs, print_line):
        study_tuning = tune.MethodTuning(study, study.search_space, configs, study_logs, print_line, launch)
        study_tuning.tune_methods(method_names or list(study.search_space.methods))
    return 0


def _report_study(study: Study, configs: Path) -> int:
    """Write the page of `study` and the page of all studies, and return the exit code.

    If the user has results of own methods, a copy of the page that includes them is written to the logs. `configs` is
    the folder of the config groups.
    """
    from fedcohort.study import overview, report  # noqa: PLC0415 - scipy

    written_paths = report.write_study_report(study, _read_results(study, None, configs))
    joint_results = _read_results(study, LOGS_FOLDER / study.name, configs)
    if joint_results.user_run_keys:  # git ignores this page
        written_paths += report.write_study_report(replace(study, folder=LOGS_FOLDER / study.name), joint_results)
    rank_lines = progress.describe_user_method_ranks(study, joint_results)
    print_line("\n".join([*map(str, written_paths), *rank_lines, str(overview.write_overview_page(STUDIES_FOLDER))]))
    return 0


def _report_leaderboard(verb: str, leaderboard_name: str, configs: Path) -> int:
    """Write the page of a leaderboard, and return the exit code.

    If the user has results of own methods, a copy of the page that includes them is written to the logs.

    Args:
        verb: the verb that was typed; leaderboards have no runs, and can only be reported.
        leaderboard_name: name of the leaderboard.
        configs: folder of the config groups.

    Raises:
        OptionError: the verb needs runs.
    """
    leaderboard_folder = STUDIES_FOLDER / leaderboard_name
    if verb != "report":
        names = ", ".join(leaderboard.load_leaderboard(leaderboard_folder).studies)
        raise OptionError(
            f"{leaderboard_name} is a leaderboard without runs. Type fedcohort study {verb} with one of {names}"
        )
    from fedcohort.study import leaderboard_page  # noqa: PLC0415 - scipy

    main_leaderboard = leaderboard.load_leaderboard(
        leaderboard_folder, lambda study: _read_results(study, None, configs)
    )
    report_files = leaderboard_page.write_leaderboard_page(main_leaderboard)
    if any((LOGS_FOLDER / study / RESULTS_FILE).exists() for study in main_leaderboard.studies):
        joint_leaderboard = leaderboard.load_leaderboard(
            leaderboard_folder, lambda s: _read_results(s, LOGS_FOLDER / s.name, configs)
        )
        joint_study = replace(joint_leaderboard.study, folder=LOGS_FOLDER / leaderboard_name)
        report_files += leaderboard_page.write_leaderboard_page(replace(joint_leaderboard, study=joint_study))
    print_line("\n".join(map(str, report_files)))
    return 0


def _read_results(study: Study, user_folder: Path | None, configs: Path) -> results.Results:
    """Return the results of `study` for a page, with the runs marked whose configuration has changed.

    `user_folder` has the runs of the user's own methods; None to leave them out. `configs` is the folder of the config
    groups.
    """
    stored_results = results.load_results(study, user_folder)
    with session.print_warnings_once():
        methods = (method for (_, method, _), _ in stored_results.done_runs())
        study_with_user_methods = add_methods_of_runs(study, methods, configs)
        runner = StudyRunner(
            study_with_user_methods, stored_results, configs, LOGS_FOLDER / study.name, False, print_line
        )
        return runner.mark_changed_runs()
