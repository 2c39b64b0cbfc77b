#!/usr/bin/env bash
# FLASH, Table I's shape: 8 selectors by 7 aggregators under noniid30_noise15, three paired seeds, 40 rounds. Everybody
# trains with cross-entropy, but RHFL's column with its own symmetric loss. One multirun: the proxy, inputs of the
# clients' validation sets, is read by FedDF and RHFL alone, and takes nothing away from the others.
. "$(dirname "$0")/setup.sh"
seeds=${SEEDS:-0,1,2}
selectors=random,oort,pyramidfl,restless_bandit,neural_bandit,fedcor,feel,flash
sweep experiment=flash_settings "${fashion[@]}" heterogeneity=noniid30_noise15 selector=$selectors \
  agg=fedavg,fedprox,fedbio,fednova,scaffold,feddf,rhfl proxy=client_heldout
table accuracy rows=selector cols=agg baseline=random
table overlap rows=selector cols=agg metric=select/uniform_overlap_mean better=low
table departure rows=selector cols=agg metric=select/departure better=low
