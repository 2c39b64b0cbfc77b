#!/usr/bin/env bash
# FLASH's row of Table I as the paper's whole method, its selection and its loss, beside random with the same loss.
# FedBiO and RHFL have a loss of their own against noise and refuse a second one, or would train without theirs.
. "$(dirname "$0")/setup.sh"
seeds=${SEEDS:-0,1,2}
sweep experiment=flash_settings "${fashion[@]}" heterogeneity=noniid30_noise15 objective=flash_robust \
  selector=random,flash agg=fedavg,fedprox,fednova,scaffold,feddf proxy=client_heldout
table accuracy rows=selector cols=agg baseline=random
