"""The rows of committed studies belong to the present configs."""

from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from case_loop import for_all
from fedcohort.study import definition_file, result_files, results, tasks
from fedcohort.study.config_digests import ConfigDigests
from fedcohort.study.definition import Condition, list_conditions

ROOT = Path(__file__).resolve().parents[2]
STUDIES = sorted(path.parent for path in (ROOT / "studies").glob("*/results.parquet"))


def spread(places: list[Condition]) -> list[Condition]:
    """Return a few places that contain each method and each setting, whose defaults are the same in all of them."""
    settings, methods = (
        list(dict.fromkeys(getattr(place, axis) for place in places)) for axis in ("setting", "method")
    )
    # rotate the methods by one between settings, so that few pairs contain all methods and settings
    rotated = sorted(
        places, key=lambda place: (methods.index(place.method) - settings.index(place.setting)) % len(methods)
    )
    chosen: list[Condition] = []
    for place in rotated:
        if all(place.setting != selected.setting for selected in chosen) or all(
            place.method != selected.method for selected in chosen
        ):
            chosen.append(place)
    return chosen


@cache
def digests() -> ConfigDigests:
    return ConfigDigests(ROOT / "configs")


@cache
def read_results(folder: Path) -> results.Results:
    return results.load_results(definition_file.load_study(folder))


@pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)
def test_committed_rows_match_todays_configs(folder: Path) -> None:
    """A changed default or option name would make whole studies run again.

    Hydra composes the conditions whose yaml files have changed since their digests were stored, and two others.
    """
    study = definition_file.load_study(folder)
    rows = result_files.read_run_rows(folder)
    rows_by_place = {(row["cell"], row["selector"]): row for row in rows if row["status"] == result_files.DONE}
    places = spread([place for place in list_conditions(study) if (place.setting, place.method) in rows_by_place])
    assert places
    digest_of = digests().find_digest
    changed = [p for p in places if rows_by_place[p.setting, p.method]["stamp"] != digest_of(p.overrides)]
    for place in [*changed, *places[:2]]:
        row = rows_by_place[place.setting, place.method]
        identity = dict(tasks.identify_run_config(place.overrides, ROOT / "configs"))
        if place.method in study.same_cost:  # its runs end at the cost of another method, which differs between seeds
            identity.pop("budget")
        assert identity == {name: row[name] for name in identity}, place


@for_all("folder", STUDIES)
def test_committed_summaries_follow_from_the_curves(folder: Path) -> None:
    """A table that older rules computed would mislead its readers."""
    key, names = ["cell", "selector", "seed"], ["late", "rounds_to_target", "virtual_s_to_target", "bytes_to_target"]
    stored = pd.read_parquet(folder / result_files.RESULTS_FILE).set_index(key)[names]
    computed = pd.DataFrame([row for _, row in read_results(folder).done_runs()]).set_index(key)[names]
    pd.testing.assert_frame_equal(stored.loc[computed.index], computed, check_dtype=False, rtol=1e-5, atol=0)
