#!/usr/bin/env bash
# FLASH's three settings: every selector with FedAvg, trained with cross-entropy and with FLASH's robust loss; FLASH also
# to the letter; five paired seeds, 40 rounds.
. "$(dirname "$0")/setup.sh"
settings=noniid30,noise15,noniid30_noise15
words=random,round_robin,powd,rpowd,ucb_cs,oort,pyramidfl,feel,fedcor,fedpns,hcsfed,fedcbs,restless_bandit,neural_bandit
sweep experiment=flash_settings "${fashion[@]}" heterogeneity=$settings selector=$words,flash,flash_literal,oracle_clean
sweep experiment=flash_settings "${fashion[@]}" heterogeneity=$settings objective=flash_robust \
  selector=random,oort,pyramidfl,feel,fedcor,restless_bandit,neural_bandit,flash,flash_literal
for objective in ce flash_robust; do
  table $objective cols=heterogeneity baseline=random filter="params.objective = '$objective'"
done
