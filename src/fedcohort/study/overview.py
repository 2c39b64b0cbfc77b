"""Write `studies/README.md`: the settings of all studies on one page, those with the largest gain first.

Each report of a study leaves one line for each of its settings in `tables/overview.csv`. The page is made from these
lines and from `tables/numbers.csv`, so that no study is judged again.
"""

import math
from pathlib import Path
from statistics import mode

import pandas as pd

from fedcohort.errors import OptionError
from fedcohort.record.folder import write_atomically
from fedcohort.report.render import render
from fedcohort.report.table import EMPTY_CELL
from fedcohort.results.verdict import adjust_p_by_holm
from fedcohort.startup.compose import read_yaml
from fedcohort.study import leaderboard
from fedcohort.study.definition import METHOD, STUDY_FILE, Study
from fedcohort.study.number_formats import MetricFormat
from fedcohort.study.page_data import BETTER_KIND, SETTING_KINDS, SETTING_KINDS_ON_PAGE, classify_setting
from fedcohort.study.page_tables import format_gains, format_headroom
from fedcohort.study.results import Results, list_federations
from fedcohort.study.speed import Speeds, describe_faster_methods
from fedcohort.study.verdict import Verdict

OVERVIEW_FILE, NUMBERS_FILE, PAGE_FILE = "tables/overview.csv", "tables/numbers.csv", "README.md"
SIGNIFICANCE_LEVEL = 0.05  # of the one correction over all studies
OVERVIEW_COLUMNS = (  # of overview.csv
    *("cell", "kind", "largest", "setting", "metric", "seeds", "headroom", "better", "worse", "faster", "pays"),
    "federation",
)


def format_overview(
    study: Study, results: Results, verdict: Verdict, speeds: Speeds, metric_format: MetricFormat
) -> str:
    """Return the overview table of a study as CSV, one line per setting.

    Args:
        study: the study's definition.
        results: the study's stored results.
        verdict: the study's verdict.
        speeds: speed-ups by cost, and by setting and method.
        metric_format: format of differences.
    """
    federations = list_federations(study, results)
    overview_rows = []
    for setting_name, setting in verdict.settings.items():
        better_methods, headroom = setting.find_better_methods(), setting.headroom.difference
        largest_gain = better_methods[0].difference.mean if better_methods else headroom.mean if headroom else math.nan
        seed_counts = [method.difference.n for method in setting.methods.values() if method.role == METHOD]
        overview_row = {
            "cell": setting_name,
            "kind": classify_setting(study, setting),
            "largest": repr(largest_gain * metric_format.factor),
            "setting": study.settings[setting_name].label,
            "metric": study.metric,
            "seeds": str(mode(seed_counts)) if seed_counts else "",
            "headroom": format_headroom(setting, metric_format),
            "better": format_gains(better_methods, metric_format, study.rules.alpha) or EMPTY_CELL,
            "worse": format_gains(setting.find_worse_methods(), metric_format, study.rules.alpha) or EMPTY_CELL,
            "faster": describe_faster_methods(study, setting_name, speeds) or EMPTY_CELL,
            "pays": "yes" if setting.headroom.has_headroom else "no",
            "federation": federations.get(setting_name, f"{study.name} {setting_name}"),
        }
        overview_rows.append(overview_row)
    return pd.DataFrame(overview_rows, columns=list(OVERVIEW_COLUMNS)).to_csv(index=False, lineterminator="\n")


def write_overview_page(studies_folder: Path) -> Path:
    """Write `README.md`, the page over the studies in `studies_folder`, and return its path."""
    write_atomically(studies_folder / PAGE_FILE, render_page(studies_folder))
    return studies_folder / PAGE_FILE


def render_page(studies: Path) -> str:
    """Return the page over the studies in the folder `studies`, as Markdown."""
    study_folders = sorted(study_file.parent for study_file in studies.glob(f"*/{STUDY_FILE}"))
    rows_by_study = {folder.name: _read_overview_csv(folder / OVERVIEW_FILE) for folder in study_folders}
    title_by_study = {folder.name: _read_title(folder) for folder in study_folders if rows_by_study[folder.name].empty}
    overview_frames = [frame.assign(study=name) for name, frame in rows_by_study.items()]
    rows = pd.concat(overview_frames or [_read_overview_csv(studies / OVERVIEW_FILE)])
    study_names = sorted(name for name, frame in rows_by_study.items() if not frame.empty)
    significance_tests = _adjust_p_over_studies(studies, study_names)
    significance_tests["is_sure"] = (significance_tests["sign"] == "1") & (significance_tests["p"] < SIGNIFICANCE_LEVEL)
    test_counts = significance_tests.groupby(["study", "cell"])["is_sure"].agg(n_tests="size", is_sure="any")
    rows = rows.join(test_counts, on=["study", "cell"]).fillna({"n_tests": 0, "is_sure": False})
    rows = rows.assign(
        size=rows["largest"].astype(float),
        n_seeds=rows["seeds"].replace("", "0").astype(int),
        kind_order=rows["kind"].map(SETTING_KINDS.index),
        is_sure=rows["is_sure"].astype(bool),
    )
    sorted_rows = rows.sort_values("size", ascending=False, kind="stable")
    return render(
        "studies.md.j2",
        by_kind={kind: sorted_rows[sorted_rows["kind"] == kind].to_dict("records") for kind in SETTING_KINDS_ON_PAGE},
        counts=_count_settings_by_kind(rows),
        tests=len(significance_tests),
        settings=len(rows),
        names=sorted(set(rows["study"])),
        without_page={name: title for name, title in title_by_study.items() if title},
    )


def _read_overview_csv(csv_file: Path) -> pd.DataFrame:
    """Return the overview table in `csv_file`, with texts in all columns.

    The table has no rows if the file is missing, or if a version with other columns wrote it.
    """
    rows = pd.read_csv(csv_file, dtype=str, keep_default_na=False) if csv_file.exists() else pd.DataFrame()
    return rows if set(OVERVIEW_COLUMNS) <= set(rows) else pd.DataFrame(columns=[*OVERVIEW_COLUMNS, "study"], dtype=str)


def _read_title(study_folder: Path) -> str:
    """Return the title of the study in `study_folder`; "" for a leaderboard, an error text for a bad file."""
    try:
        return "" if leaderboard.is_leaderboard(study_folder) else str(read_yaml(study_folder / STUDY_FILE)["title"])
    except (OptionError, OSError, KeyError, TypeError, ValueError):  # it is being written
        return f"its {STUDY_FILE} can't be read"


def _adjust_p_over_studies(studies: Path, study_names: list[str]) -> pd.DataFrame:
    """Return all tests of methods in settings, one row each, with p-values corrected together by Holm, column `p`.

    Args:
        studies: folder of all studies.
        study_names: names of the studies that have a page.
    """
    test_columns = ["study", "cell", "role", "diff_p", "sign"]
    numbers_frames = [
        pd.read_csv(studies / name / NUMBERS_FILE, dtype=str, keep_default_na=False).assign(study=name)[test_columns]
        for name in study_names
    ]
    significance_tests = pd.concat(numbers_frames) if numbers_frames else pd.DataFrame(columns=test_columns, dtype=str)
    significance_tests = significance_tests.query("role == @METHOD and diff_p != ''")
    return significance_tests.assign(p=adjust_p_by_holm(significance_tests["diff_p"].astype(float).tolist()))


def _count_settings_by_kind(rows: pd.DataFrame) -> dict[str, int]:
    """Count the settings of each outcome; of several settings with the same federation only the largest counts.

    The largest setting has the most seeds; among equals it has the most tests, then the most cautious outcome.
    `rows` are the rows of the page. Further keys count federations: `different`, `repeated` in several settings, with
    outcomes that `disagree`, with a `sure` winner, and with a winner `beyond` the headroom.
    """
    sorted_rows = rows.sort_values(["n_seeds", "n_tests", "kind_order"], ascending=False, kind="stable")
    distinct_federations = sorted_rows.drop_duplicates("federation")
    federation_counts = rows.groupby("federation")["kind"].agg(["size", "nunique"])
    return {
        **{setting_kind: int((distinct_federations["kind"] == setting_kind).sum()) for setting_kind in SETTING_KINDS},
        "different": len(distinct_federations),
        "repeated": int((federation_counts["size"] > 1).sum()),
        "disagree": int((federation_counts["nunique"] > 1).sum()),
        "sure": int(distinct_federations["is_sure"].sum()),
        "beyond": int(((distinct_federations["kind"] == BETTER_KIND) & (distinct_federations["pays"] == "no")).sum()),
    }
