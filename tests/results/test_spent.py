"""What runs spent, in all and relative to the baseline."""

import math

from fedcohort.results.spent import count_costs
from results.constant_runs import frames


def test_costs_are_over_common_seeds() -> None:
    runs = frames({("", "random"): [0.1, 0.2], ("", "ucb"): [0.2]})
    runs.runs.loc[runs.runs["condition"] == "ucb", "bytes"] = 6.0
    costs = count_costs(runs, "random")
    assert set(costs) == {"virtual_s", "bytes"}, "no run logged FLOPs"
    assert (costs["bytes"]["", "ucb"].mean, costs["bytes"]["", "ucb"].times) == (6.0, 3.0)
    assert math.isnan(count_costs(runs, "random", unpaired={("", "ucb")})["bytes"]["", "ucb"].times)
