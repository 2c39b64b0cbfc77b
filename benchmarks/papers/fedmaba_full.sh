#!/usr/bin/env bash
# FedMABA with everybody in every round, as its Fig. 1(a) has Fashion-MNIST: two shards a client, five paired seeds, 100
# rounds.
. "$(dirname "$0")/setup.sh"
sweep experiment=fedmaba_table2 "${fashion[@]}" cohort=100 \
  agg=fedavg,qffl,afl,term,fedmgda_plus,propfair,fedprox,fedmaba
table variance metric=clients/acc_var rows=agg baseline=fedavg better=low
table accuracy metric=test/acc rows=agg baseline=fedavg
table worst5 metric=clients/acc_worst5 rows=agg baseline=fedavg
table best5 metric=clients/acc_best5 rows=agg baseline=fedavg
