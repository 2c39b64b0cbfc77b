"""The tables of a study's page with means over runs: correlations of scores, attackers and privacy."""

import json
import math

from fedcohort.report.table import Table
from fedcohort.round.score_correlation import CLIENT_FACTS
from fedcohort.study.definition import Study
from fedcohort.study.page_tables import format_method_label, make_table
from fedcohort.study.ranking import group_runs
from fedcohort.study.results import Results

SCORE_NAMES = {"score": "score", "exploit": "exploitation", "reward": "reward"}
MEAN_TABLES = {  # by table: the column of the results, its factor and the caption
    "attackers": ("attack_share", 100, "Share of attackers among the clients that arrived, in %"),
    "privacy": ("epsilon", 1, "Largest epsilon of a client's reports over a run"),
}
FACT_NAMES = {"noise": "label noise", "skew": "class imbalance", "seconds": "seconds", "samples": "samples"}


def make_correlation_table(study: Study, results: Results) -> dict[str, Table]:
    """Return rank correlations of scores and rewards with properties of the clients, as {"correlations": table}.

    Such a property is the rate of wrong labels. Methods without a reward are left out; {} if no run has one. The column
    `follows` of `results.parquet` has the correlations of all runs.

    Args:
        study: the study's definition.
        results: the study's stored results.
    """
    import pandas as pd

    means_by_condition = {}
    for condition, rows in group_runs(study, results).items():
        runs = [json.loads(run["follows"] or "{}") for run in rows.values()]
        if runs := [means for means in runs if any(measure.startswith("reward_") for measure in means)]:
            means_by_condition[condition] = pd.DataFrame(runs).mean()
    row_names = {
        f"{score}_{fact}": f"{SCORE_NAMES[score]}: {FACT_NAMES[fact]}" for score in SCORE_NAMES for fact in CLIENT_FACTS
    }
    correlation_frame = pd.DataFrame(means_by_condition).reindex([*row_names]).dropna(how="all").rename(index=row_names)
    cell_texts = correlation_frame.map(lambda rho: f"{rho:+.2f}" if math.isfinite(rho) else "").to_dict()
    table_rows = [
        {"setting": study.settings[cell[0]].label, "method": cell[1], **cell_texts[cell]} for cell in means_by_condition
    ]
    caption = "Rank correlation of scores and rewards with facts of the clients"
    return {"correlations": make_table(table_rows, caption)} if table_rows else {}


def make_mean_tables(study: Study, results: Results) -> dict[str, Table]:
    """Return the tables of `MEAN_TABLES` for which runs have values, by name: means over seeds by method and setting.

    Args:
        study: the study's definition.
        results: the study's stored results.
    """
    tables = {}
    for table_name, (column, scale_factor, caption) in MEAN_TABLES.items():
        texts_by_method: dict[str, dict[str, str]] = {}
        for (setting, method), rows in group_runs(study, results).items():
            run_values = [run[column] for run in rows.values() if math.isfinite(run.get(column, math.nan))]
            if run_values:
                mean_text = f"{scale_factor * sum(run_values) / len(run_values):.1f}"
                texts_by_method.setdefault(method, {})[study.settings[setting].label] = mean_text
        table_rows = [{"method": format_method_label(study, m), **texts_by_method[m]} for m in texts_by_method]
        if table_rows:
            tables[table_name] = make_table(table_rows, caption)
    return tables
