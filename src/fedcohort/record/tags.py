"""Names of the tags by which a run is found again, in MLflow and in a comparison."""

from fedcohort.round.budget import OPTIONS

FOLDER = "folder"  # where the run is on the disk of its machine
COMMITS, FORCED = "commits", "forced"  # of all starts
ORACLE = "yardstick"  # what a run read that no server can know
ASKED, DONE = "rounds", "rounds_done"  # the parameter `rounds` stays what it was at the first start
BUDGET = OPTIONS  # for the same reason: each option that extends a run
ENDED_BY = "ended_by"  # the options of the budget that a finished run has reached, "" for a callback
SWEEPS = "sweep_id"  # the sweeps that a run was in, the earliest first
SEPARATOR = ", "  # between several sweeps or commits
