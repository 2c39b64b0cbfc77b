"""Words composed once for many seeds are what each seed's words are composed to."""

from fedcohort.startup.compose import run_of, seeds_of
from yaml_words import CONFIGS

WORDS = ("selector=flash", "heterogeneity=noise_bimodal", "agg=fedprox", "data_seed=${seed}")


def test_a_family_is_its_members() -> None:
    config_of = seeds_of(WORDS, CONFIGS)
    for seed in (3, 0, 12):
        own = run_of((*WORDS, f"seed={seed}"), CONFIGS)
        assert config_of(seed) == own
        assert own.config["data_seed"] == seed
