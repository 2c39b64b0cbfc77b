"""The yaml of a composed config, which users read and OmegaConf reads back."""

import pytest
from omegaconf import OmegaConf

from fedcohort.startup.compose import format_config
from run_harness import compose_overrides


@pytest.mark.parametrize("overrides", [(), ("selector=flash", "agg=fedprox"), ("experiment=fedbalancer_celeba_cpu",)])
def test_the_yaml_of_a_config_is_that_of_omegaconf(overrides: tuple[str, ...]) -> None:
    config = compose_overrides(*overrides).config
    assert format_config(config) == OmegaConf.to_yaml(dict(config))


def test_texts_that_look_like_numbers_are_read_back_as_texts() -> None:
    config = {
        "texts": ["1e-3", "12", "true", "off", "null", "~", ".nan", "é", "a: b"],
        "values": [1e-3, 12, True, None],
    }
    assert OmegaConf.to_container(OmegaConf.create(format_config(config))) == config
