#!/usr/bin/env bash
# FedMABA, Table II: variance of the clients' test accuracy, global accuracy, worst and best 5 %; five paired seeds.
. "$(dirname "$0")/setup.sh"
for partition in label_shards dirichlet; do
  sweep experiment=fedmaba_table2 "${fashion[@]}" partition=$partition \
    agg=fedavg,qffl,afl,term,fedmgda_plus,propfair,fedprox,fedmaba
done
table variance rows=agg cols=partition metric=clients/acc_var baseline=fedavg better=low
table accuracy rows=agg cols=partition metric=test/acc baseline=fedavg
table worst5 rows=agg cols=partition metric=clients/acc_worst5 baseline=fedavg
table best5 rows=agg cols=partition metric=clients/acc_best5 baseline=fedavg
