"""The options of a run that its start-up table shows."""

from fedcohort.startup.run_info import list_typed_options
from run_harness import compose_overrides


def test_typed_choices_and_options_are_listed_without_those_of_observers() -> None:
    overrides = ("selector=flash", "selector.delta=0.1", "objective=propfair", "objective@objective.base=gce", "seed=3")
    expected = dict(override.split("=") for override in overrides)
    assert list_typed_options(compose_overrides(*overrides, "callback=none", "logger=none")) == expected
