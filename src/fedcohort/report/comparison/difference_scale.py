"""The vertical scale of curves of differences: logarithmic beyond a point where a linear one would hide a point.

Early rounds differ most, and a method may collapse: next to 50 points, a difference of one point is not visible.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedcohort.report.comparison.mean_curves import MeanCurve
from fedcohort.results.verdict import Rules

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOG_SCALE_RATIO = 10.0  # of the largest difference to the one worth detecting, beyond which the scale is logarithmic


def find_linear_limit(mean_curves: Iterable[MeanCurve], rules: Rules) -> float:
    """Return the difference beyond which the scale of `mean_curves` is logarithmic; 0 for a linear scale.

    It is the difference `rules.worth` that is worth detecting, in the metric's own unit.
    """
    largest = max(float(np.max(np.abs(curve.mean) + np.nan_to_num(curve.half_width))) for curve in mean_curves)
    return rules.worth if largest > LOG_SCALE_RATIO * rules.worth else 0.0


def set_scale(panels: "Sequence[Axes]", linear_limit: float) -> None:
    """Make the vertical axes of `panels` logarithmic beyond plus and minus `linear_limit`; 0 leaves them linear."""
    from matplotlib.ticker import SymmetricalLogLocator

    for axes in panels if linear_limit else ():
        axes.set_yscale("symlog", linthresh=linear_limit)
        axes.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=linear_limit))
        axes.yaxis.set_major_formatter("{x:g}")
