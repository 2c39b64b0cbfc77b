"""A leaderboard, `studies/<name>/study.yaml` with `of`: the methods of several studies over all of their settings.

    of                     the prefix of the labels of each study's settings: {regimes_digits: digits}
    title, question        as of a study (`definition_file.py`)

Nothing is trained: a leaderboard reads the results of its studies. They have one baseline, metrics of one unit, and the
same result and horizon. A setting that is in two studies, the same federation with the same horizon and metric, is
taken from the first one only.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedcohort import ranges
from fedcohort.errors import OptionError
from fedcohort.results.metric import find_metric_unit
from fedcohort.startup.compose import read_yaml
from fedcohort.study import definition_file, results
from fedcohort.study.checks import check_option_names, name_file_in_errors, read_named_mapping, read_verdict_rules
from fedcohort.study.definition import STUDY_FILE, Study
from fedcohort.study.results import Results

REQUIRED_OPTIONS = ("title", "question", "of")


@dataclass(frozen=True)
class Leaderboard:
    """Several studies that are joined into one study.

    Attributes:
        study: a study with all settings but `duplicate_settings`, named `<study>/<setting>`, and all methods.
        results: rows of the results of all studies, with settings of these names, and without curves.
        study_names: name of the study of each setting.
        duplicate_settings: settings that are left out, with the equal setting of an earlier study.
        label_prefixes: prefix of the labels of each study's settings, by study.
        studies: the studies by name.
        results_by_study: results of each study, by its name.
    """

    study: Study
    results: Results
    study_names: Mapping[str, str]
    duplicate_settings: Mapping[str, str]
    label_prefixes: Mapping[str, str]
    studies: Mapping[str, Study]
    results_by_study: Mapping[str, Results]


def is_leaderboard(folder: Path) -> bool:
    """Return whether `study.yaml` in `folder` defines a leaderboard; False if it can't be read."""
    try:
        return "of" in read_yaml(folder / STUDY_FILE)
    except (OptionError, OSError, TypeError, ValueError):
        return False


def load_leaderboard(folder: Path, load_results: Callable[[Study], Results] = results.load_results) -> Leaderboard:
    """Read a leaderboard and its studies, which are folders next to it.

    Args:
        folder: folder of the leaderboard.
        load_results: function that returns the results of a study.

    Raises:
        OptionError: a wrong option, or studies that can't be compared.
        DataError: damaged results.
    """
    options = _read_leaderboard_options(folder)
    studies = {name: definition_file.load_study(folder.parent / name) for name in options["of"]}
    first_study = next(iter(studies.values()))
    for name, study in studies.items():
        with name_file_in_errors(folder / STUDY_FILE, REQUIRED_OPTIONS):
            check_comparable_study(f"of.{name}", study, first_study)
    all_results = {name: load_results(study) for name, study in studies.items()}
    studies = {name: results.mark_oracle_methods(study, all_results[name]) for name, study in studies.items()}
    left_out_settings = _find_duplicate_settings(studies, all_results)
    joint_settings = [
        setting.rename_for_joint_study(name, f"{options['of'][name]}: {setting.label}")
        for name, study in studies.items()
        for setting in study.settings.values()
    ]
    settings = {setting.name: setting for setting in joint_settings if setting.name not in left_out_settings}
    joint_study = Study(
        folder=folder,
        title=options["title"],
        question=options["question"],
        common_overrides=(),
        baseline=first_study.baseline,
        overrides={method: overrides for study in studies.values() for method, overrides in study.overrides.items()},
        role_by_method={method: role for study in studies.values() for method, role in study.role_by_method.items()},
        settings=settings,
        seeds=sorted({seed for study in studies.values() for seed in study.seeds}),
        metric=" or ".join(dict.fromkeys(study.metric for study in studies.values())),
        result=first_study.result,
        horizon=first_study.horizon,
        rules=options["verdict"],
        variants=_join_variant_groups(list(studies.values())),
        tunings={
            f"{key} in {name}": tuning_result
            for name, study in studies.items()
            for key, tuning_result in study.tunings.items()
        },
    )
    study_names, joint_results = {name: name.partition("/")[0] for name in settings}, _join_results(folder, all_results)
    return Leaderboard(joint_study, joint_results, study_names, left_out_settings, options["of"], studies, all_results)


def check_comparable_study(option_path: str, study: Study, first_study: Study) -> None:
    """Raise `OptionError` if a study can't be compared with the first study of the leaderboard.

    Args:
        option_path: option that names the study, for messages.
        study: the study.
        first_study: the leaderboard's first study.
    """
    for field in ("baseline", "result", "horizon"):
        if getattr(study, field) != getattr(first_study, field):
            requirement_text = f"with {field}={getattr(first_study, field)}, as {first_study.name} is"
            raise ranges.range_error(option_path, f"a study {requirement_text}", f"{field}={getattr(study, field)}")
    if find_metric_unit(study.metric) != find_metric_unit(first_study.metric):
        raise ranges.range_error(
            option_path, f"a study with the unit of {first_study.metric}, like {first_study.name}", study.metric
        )


def _read_leaderboard_options(folder: Path) -> dict[str, Any]:
    """Return the options of the leaderboard in `folder`, `verdict` as `Rules`; raise `OptionError` for a wrong one."""
    with name_file_in_errors(folder / STUDY_FILE, REQUIRED_OPTIONS):
        options = read_yaml(folder / STUDY_FILE)
        check_option_names("", options, (*REQUIRED_OPTIONS, "verdict"), REQUIRED_OPTIONS)
        for option_name in ("title", "question"):
            ranges.text(option_name, options[option_name])
        label_prefixes = read_named_mapping("of", options["of"])
        for study_name, label_prefix in label_prefixes.items():
            ranges.text(f"of.{study_name}", label_prefix)
        if not label_prefixes:
            raise ranges.range_error("of", "one study or more, as {regimes_digits: digits}", options["of"])
        return {**options, "of": label_prefixes, "verdict": read_verdict_rules(options.get("verdict") or {})}


def _find_duplicate_settings(studies: Mapping[str, Study], results_by_study: Mapping[str, Results]) -> dict[str, str]:
    """Return the settings that repeat federation, horizon and metric of an earlier study's setting, with that setting.

    Settings are named `<study>/<setting>`.

    Args:
        studies: the studies by name, in the order of the leaderboard.
        results_by_study: their results by the same names.
    """
    first_setting_by_federation: dict[tuple[str, str], str] = {}
    duplicate_settings = {}
    for name, study in studies.items():
        for setting, federation_text in results.list_federations(study, results_by_study[name]).items():
            earlier_setting = first_setting_by_federation.setdefault(
                (federation_text, study.metric), f"{name}/{setting}"
            )
            if earlier_setting.partition("/")[0] != name:
                duplicate_settings[f"{name}/{setting}"] = earlier_setting
    return duplicate_settings


def _join_variant_groups(studies: Sequence[Study]) -> dict[str, list[str]]:
    """Return the variants of all studies: the methods of each group, by the name of the group."""
    group_names = dict.fromkeys(name for study in studies for name in study.variants)
    return {name: list(dict.fromkeys(m for s in studies for m in s.variants.get(name, ()))) for name in group_names}


def _join_results(folder: Path, results_by_study: Mapping[str, Results]) -> Results:
    """Return the results of several studies as one, with settings named `<study>/<setting>`.

    Args:
        folder: folder of the leaderboard.
        results_by_study: results by the name of their study.
    """
    joint_results = Results(folder)
    for name, study_results in results_by_study.items():
        for (setting, method, seed), run_row in study_results.rows.items():
            joint_results.rows[f"{name}/{setting}", method, seed] = {**run_row, "cell": f"{name}/{setting}"}
        joint_results.changed |= {(f"{name}/{run_key[0]}", *run_key[1:]) for run_key in study_results.changed}
    return joint_results
