#!/usr/bin/env bash
# TERM in fedmaba_table2, with weights that sum to 1, and with steps of 1/m of that for a round of m = 10 clients (server.lr=0.1),
# as TERM's own code has them; five paired seeds, 100 rounds.
. "$(dirname "$0")/setup.sh"
for partition in label_shards dirichlet; do
  sweep experiment=fedmaba_table2 "${fashion[@]}" partition=$partition agg=term server.lr=1.0,0.1
done
table variance rows=server.lr cols=partition metric=clients/acc_var baseline=1.0 better=low
table accuracy rows=server.lr cols=partition metric=test/acc baseline=1.0
table worst5 rows=server.lr cols=partition metric=clients/acc_worst5 baseline=1.0
table best5 rows=server.lr cols=partition metric=clients/acc_best5 baseline=1.0
