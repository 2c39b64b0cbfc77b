"""Without an attack no metric mentions attackers."""

import numpy as np

from config_options import make_component
from fedcohort.rng import new_generator
from fedcohort.round.queries import ClientReports
from round_harness import run_without_files


def test_without_an_attack_reports_are_unchanged() -> None:
    attack = make_component("attack", "none")
    assert len(attack.attacker_ids(50, new_generator(0, "attack"))) == 0
    assert not attack.falsified_signals
    values = np.array([1.0, np.nan, 3.0])
    claims = ClientReports(attack, 0, 3)
    assert claims.report_values("loss", np.arange(3), values) is values


def test_no_metric_of_attackers_is_logged() -> None:
    run = run_without_files("agg=fedmaba")
    assert not [name for report in run.reports for name in report.metrics if name.startswith("attack/")]
