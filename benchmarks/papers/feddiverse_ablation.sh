#!/usr/bin/env bash
# What FedDiverse chooses by, on CMNIST_GSC: its estimate, the true triplets, the true matrices; the printed product of
# its third step, or its absolute value; and how its estimate correlates with the truth. Five paired seeds, 25 rounds.
. "$(dirname "$0")/setup.sh"
run() { sweep experiment=feddiverse_cmnist_cpu "${mnist[@]}" selector=feddiverse "$@"; }
run selector.source=estimated,known_dht selector.cross=signed,abs
run selector.source=known_matrix
table worst_group metric=test/acc_worst_group rows=selector.source cols=selector.cross baseline=estimated
"$python" benchmarks/papers/triplets.py "$logs" > "benchmarks/papers/$name/triplets.md"
