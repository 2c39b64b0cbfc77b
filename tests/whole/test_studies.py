"""The studies that are committed: their rows are of the configs as these are now."""

from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from fedcohort.study import definition_file, result_files, results, tasks
from fedcohort.study.definition import Condition, list_conditions

ROOT = Path(__file__).resolve().parents[2]
STUDIES = sorted(path.parent for path in (ROOT / "studies").glob("*/results.parquet"))


def spread(places: list[Condition]) -> list[Condition]:
    """Return places that have each row and each regime once or more: a row's defaults are the same in all of them."""
    cells, rows = (list(dict.fromkeys(getattr(place, axis) for place in places)) for axis in ("setting", "method"))
    # the rows are moved on by one from regime to regime, so that both come by with few places
    turned = sorted(places, key=lambda place: (rows.index(place.method) - cells.index(place.setting)) % len(rows))
    chosen: list[Condition] = []
    for place in turned:
        if all(place.setting != selected.setting for selected in chosen) or all(
            place.method != selected.method for selected in chosen
        ):
            chosen.append(place)
    return chosen


@cache
def read(folder: Path) -> results.Results:
    return results.load(definition_file.load(folder))


@pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)
def test_committed_rows_match_todays_configs(folder: Path, tmp_path: Path) -> None:
    """A change of a default or of an option's name would have whole studies run again: it is seen here."""
    study = definition_file.load(folder)
    rows = {key[:2]: (key[2], row) for key, row in read(folder).done_runs()}
    places = [place for place in list_conditions(study) if (place.setting, place.method) in rows]
    assert places  # of which some are looked at
    for place in spread(places):
        _, row = rows[place.setting, place.method]
        stored = {name: row[name] for name in ("config_hash", "budget")}
        assert tasks.identity_of(place.overrides, ROOT / "configs") == stored, place


@pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)
def test_committed_summaries_follow_from_the_curves(folder: Path) -> None:
    """Results follow from the curves, by today's rules: a table that was kept by older ones misleads who opens it."""
    key, names = ["cell", "selector", "seed"], ["late", "rounds_to_target", "virtual_s_to_target", "bytes_to_target"]
    committed = pd.read_parquet(folder / result_files.RESULTS).set_index(key)[names]
    computed = pd.DataFrame([row for _, row in read(folder).done_runs()]).set_index(key)[names]
    pd.testing.assert_frame_equal(committed.loc[computed.index], computed, check_dtype=False, rtol=1e-5, atol=0)
