"""What the runs of a comparison spent by their end: virtual seconds, bytes and client FLOPs."""

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from fedcohort.results.compare import Cell, base_of, runs_by_cell
from fedcohort.results.frame import AXES, Frames


@dataclass(frozen=True)
class CellCost:
    """What the runs of a cell spent of one cost by their end.

    Attributes:
        mean: mean over seeds, in seconds, bytes or FLOPs.
        times: sum over the common seeds, divided by the baseline's sum; NaN without a baseline.
    """

    mean: float
    times: float


def count_costs(
    frames: Frames, baseline: str | None, unpaired: Collection[Cell] = ()
) -> dict[str, dict[Cell, CellCost]]:
    """Return the cost of each cell, by the name of the cost, without costs that no run logged.

    Args:
        frames: the runs.
        baseline: condition with which the others are compared, None without one.
        unpaired: cells whose seeds give other data than the baseline's.
    """
    costs: dict[str, dict[Cell, CellCost]] = {}
    for cost in AXES:
        if cost not in frames.runs or not (frames.runs[cost] > 0).any():
            continue
        by_seed = {
            cell: dict(zip(rows["seed"], rows[cost], strict=True)) for cell, rows in runs_by_cell(frames.runs).items()
        }
        costs[cost] = {}
        for cell, values in by_seed.items():
            base = base_of(by_seed, cell, baseline, unpaired) or {}
            common = [seed for seed in values if seed in base]
            total = sum(base[seed] for seed in common)
            times = sum(values[seed] for seed in common) / total if total > 0 else math.nan
            costs[cost][cell] = CellCost(float(np.mean(list(values.values()))), times)
    return costs
