"""The studies that are committed: their rows are of the configs as these are now."""

from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from fedcohort.study import definition, results, tasks
from fedcohort.study.places import Place, list_places

ROOT = Path(__file__).resolve().parents[2]
STUDIES = sorted(path.parent for path in (ROOT / "studies").glob("*/results.parquet"))


def spread(places: list[Place]) -> list[Place]:
    """Return places that have each row and each regime once or more: a row's defaults are the same in all of them."""
    cells, rows = (list(dict.fromkeys(getattr(place, axis) for place in places)) for axis in ("cell", "row"))
    # the rows are moved on by one from regime to regime, so that both come by with few places
    turned = sorted(places, key=lambda place: (rows.index(place.row) - cells.index(place.cell)) % len(rows))
    chosen: list[Place] = []
    for place in turned:
        if all(place.cell != other.cell for other in chosen) or all(place.row != other.row for other in chosen):
            chosen.append(place)
    return chosen


@cache
def read(folder: Path) -> results.Results:
    return results.load(definition.load(folder))


@pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)
def test_what_was_run_would_be_found_again(folder: Path, tmp_path: Path) -> None:
    """A change of a default or of an option's name would have whole studies run again: it is seen here."""
    study = definition.load(folder)
    rows = {key[:2]: (key[2], row) for key, row in read(folder).done()}
    places = [place for place in list_places(study) if (place.cell, place.row) in rows]
    assert places  # of which some are looked at
    for place in spread(places):
        seed, row = rows[place.cell, place.row]
        task = tasks.Task(place.words, seed, ROOT / "configs", tmp_path, study.metric, False)
        assert tasks.identity_of(task) == {name: row[name] for name in ("config_hash", "budget")}, place


@pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)
def test_what_is_kept_is_what_is_read(folder: Path) -> None:
    """Results follow from the curves, by today's rules: a table that was kept by older ones misleads who opens it."""
    key, names = ["cell", "selector", "seed"], ["late", "rounds_to_target", "virtual_s_to_target", "bytes_to_target"]
    kept = pd.read_parquet(folder / results.RESULTS).set_index(key)[names]
    found = pd.DataFrame([row for _, row in read(folder).done()]).set_index(key)[names]
    pd.testing.assert_frame_equal(kept.loc[found.index], found, check_dtype=False, rtol=1e-5, atol=0)
