"""Ranks of a user's own methods, for the terminal.

`study.yaml` does not name these methods. Their results are in `logs/studies/<name>`, which git ignores, and are merged
with the study's results for status and reports.
"""

from fedcohort.study.definition import Study
from fedcohort.study.formats import count_noun
from fedcohort.study.ranking import Values, rank_over, ranked_values
from fedcohort.study.results import Results


def describe_ranks(study: Study, results: Results) -> list[str]:
    """Return a line for each own method: its mean rank among the methods that ran in its settings with its seeds."""
    own_methods = sorted({method for _, method, _ in results.rows if study.is_own(method)})
    values = ranked_values(study, results) if own_methods else {}
    return [line for method in own_methods if (line := _describe_rank(study, values, method))]


def _describe_rank(study: Study, values: Values, own_method: str) -> str:
    settings = {name: sorted(of_setting[own_method]) for name, of_setting in values.items() if own_method in of_setting}
    methods = [
        method
        for method in dict.fromkeys(method for name in settings for method in values[name])
        if all(set(seeds) <= set(values[name].get(method, ())) for name, seeds in settings.items())
    ]
    if len(methods) < 2:
        return ""
    mean = rank_over(study, values, methods, settings).mean[methods.index(own_method)]
    n_seeds = len({seed for seeds in settings.values() for seed in seeds})
    return (
        f"{own_method}: mean rank {mean:.1f} of {len(methods)} methods by {study.metric}, "
        f"{count_noun(len(settings), 'setting')}, {count_noun(n_seeds, 'seed')}"
    )
