#!/usr/bin/env bash
# FLASH at four scales of its exploration, gamma_t times 0, 0.01, 0.1 and 1; five paired seeds, 40 rounds.
. "$(dirname "$0")/setup.sh"
settings=noniid30,noise15,noniid30_noise15
sweep experiment=flash_settings "${fashion[@]}" heterogeneity=$settings selector=flash selector.gamma_scale=0,0.01,0.1,1
table accuracy rows=selector.gamma_scale cols=heterogeneity baseline=1
table overlap rows=selector.gamma_scale cols=heterogeneity metric=select/uniform_overlap_mean baseline=1 better=low
table departure rows=selector.gamma_scale cols=heterogeneity metric=select/departure baseline=1 better=low
