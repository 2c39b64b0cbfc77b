#!/usr/bin/env bash
# FedMABA's mix with everybody in every round: alpha 0 (equal weights: FedAvg), 0.5 and 0.8, the paper's best; two shards
# a client, five paired seeds, 100 rounds.
. "$(dirname "$0")/setup.sh"
sweep experiment=fedmaba_table2 "${fashion[@]}" cohort=100 agg=fedmaba agg.alpha=0,0.5,0.8
table variance metric=clients/acc_var rows=agg.alpha baseline=0 better=low
table accuracy metric=test/acc rows=agg.alpha baseline=0
table worst5 metric=clients/acc_worst5 rows=agg.alpha baseline=0
