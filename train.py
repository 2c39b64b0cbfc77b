"""Entry point: python train.py selector=flash agg=scaffold (configs/ has the words of each group)."""

import hydra
from omegaconf import DictConfig

from fedcohort.run import exit_code, start


@hydra.main(version_base="1.3", config_path="configs", config_name="train")
def main(cfg: DictConfig) -> None:
    start(cfg)


if __name__ == "__main__":
    main()
    raise SystemExit(exit_code())
