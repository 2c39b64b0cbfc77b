"""Rank correlation of a selector's scores and rewards with facts of the clients."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from fedcohort.data.skew import skew_triplets
from fedcohort.maths.spearman import rank_correlation
from fedcohort.types import Selection, Values

if TYPE_CHECKING:
    from fedcohort.data.federation import Federation

METRIC_PREFIX = "select/"
CLIENT_FACTS = ("noise", "skew", "seconds", "samples")


def split_metric_name(metric_name: str) -> tuple[str, str] | None:
    """Return the correlated score and client property, part and fact, of a metric `select/<part>_<fact>`.

    None if `metric_name` is another metric.
    """
    score_name, _, fact = metric_name.removeprefix(METRIC_PREFIX).rpartition("_")
    return (score_name, fact) if metric_name.startswith(METRIC_PREFIX) and fact in CLIENT_FACTS and score_name else None


class ScoreCorrelation:
    """Correlates scores, their terms and rewards with facts of the clients that differ between them.

    The facts are each client's label noise (`noise`), class imbalance of its observed labels (`skew`), number of
    samples (`samples`) and expected virtual seconds of a whole job (`seconds`). The seconds are left out if they rank
    the clients as the samples do.

    Args:
        federation: data of the run.
        expected_job_s: expected virtual seconds of each client's whole job, [n_clients].
    """

    def __init__(self, federation: "Federation", expected_job_s: Values) -> None:
        fact_values = {
            "noise": federation.noise_rate,
            "skew": skew_triplets(federation.label_counts[:, :, None])[:, 0],
            "seconds": expected_job_s,
            "samples": federation.n_train,
        }
        fact_columns = {k: np.asarray(v, dtype=np.float64) for k, v in fact_values.items()}
        self.facts = {k: c for k, c in fact_columns.items() if np.nanmax(c) > np.nanmin(c)}
        if {"seconds", "samples"} <= set(self.facts) and rank_correlation(
            fact_columns["seconds"], fact_columns["samples"]
        ) > 1 - 1e-9:
            del self.facts["seconds"]

    def measure_correlations(self, selection: Selection) -> Mapping[str, float]:
        """Return Spearman correlations of the scores in `selection` with the facts, as metrics `select/<part>_<fact>`.

        The part is `score`, one of its terms, or `reward`. A correlation that is not defined is left out.
        """
        score_columns = {"score": selection.scores, **selection.score_terms, "reward": selection.reward}
        scores_by_name = {score_name: v for score_name, v in score_columns.items() if v is not None}
        correlations = {
            f"{METRIC_PREFIX}{score_name}_{fact}": rank_correlation(v, c)
            for score_name, v in scores_by_name.items()
            for fact, c in self.facts.items()
        }
        return {k: rho for k, rho in correlations.items() if np.isfinite(rho)}
