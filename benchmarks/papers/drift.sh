#!/usr/bin/env bash
# FedProx, FedNova and SCAFFOLD against FedAvg under strong label skew and unequal local work; five paired seeds.
. "$(dirname "$0")/setup.sh"
sweep experiment=drift "${fashion[@]}" agg=fedavg,fedprox,fednova,scaffold
table accuracy rows=agg baseline=fedavg
table variance rows=agg baseline=fedavg metric=clients/acc_var better=low
