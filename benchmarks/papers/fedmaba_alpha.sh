#!/usr/bin/env bash
# FedMABA's mix, alpha 0.5 and 0.8 (the paper's best), with everybody in every round as in fedmaba_full; five paired seeds, 100
# rounds.
. "$(dirname "$0")/setup.sh"
sweep experiment=fedmaba_table2 "${fashion[@]}" cohort=100 agg=fedmaba agg.alpha=0.5,0.8
table variance metric=clients/acc_var rows=agg.alpha baseline=0.5 better=low
table accuracy metric=test/acc rows=agg.alpha baseline=0.5
table worst5 metric=clients/acc_worst5 rows=agg.alpha baseline=0.5
