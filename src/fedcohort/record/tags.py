"""Names of the tags that identify a run in MLflow and in a comparison."""

from fedcohort.round.budget import BUDGET_OPTIONS

RUN_FOLDER = "folder"  # path of the run folder on its machine
COMMITS_TAG, FORCED = "commits", "forced"  # commits of all starts; what differed at starts with resume=force
ORACLE_TAG = "yardstick"  # the information that the method reads and no server can know
ROUNDS, ROUNDS_DONE = "rounds", "rounds_done"  # requested (the parameter `rounds`: at the first start) and completed
BUDGET_TAGS = BUDGET_OPTIONS  # each option that extends a run; parameters keep the values of the first start
ENDED_BY_TAG = "ended_by"  # options of the budget that a finished run has reached, "" for a callback
SWEEPS = "sweep_id"  # ids of the sweeps that a run belongs to, the earliest first
SEPARATOR = ", "  # between several sweeps or commits
