"""Names of the tags that identify a run in MLflow and in a comparison."""

from fedcohort.round.budget import BUDGET_OPTIONS

RUN_FOLDER_TAG = "folder"  # path of the run folder on its machine
COMMITS_TAG, FORCED_RESUMES_TAG = "commits", "forced"  # commits of all starts; differences at starts with resume=force
ORACLE_TAG = "yardstick"  # the information that the method reads and no server can know
ROUNDS_TAG, ROUNDS_DONE_TAG = "rounds", "rounds_done"  # requested (the parameter: at the first start) and completed
BUDGET_TAGS = BUDGET_OPTIONS  # each option that extends a run; parameters keep the values of the first start
ENDED_BY_TAG = "ended_by"  # options of the budget that a finished run has reached, "" for a callback
SWEEPS_TAG = "sweep_id"  # ids of the sweeps that a run belongs to, the earliest first
TAG_SEPARATOR = ", "  # between several sweeps or commits
