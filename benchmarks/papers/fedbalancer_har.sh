#!/usr/bin/env bash
# FedBalancer, Table 1, UCI-HAR: accuracy at the end of the virtual time in which FedAvg+1T does 50 rounds, and time to the
# accuracy that the best FedAvg variant has by then; the authors' network (MODEL=mlp: a perceptron), evaluated every 5 rounds.
. "$(dirname "$0")/setup.sh"
har=(experiment=fedbalancer_har ${UCI_HAR:+dataset.path="$UCI_HAR"} eval.clients_every=0 ${MODEL:+model="$MODEL"})
every=$seeds
for seeds in ${every//,/ }; do
  avg=("${har[@]}" selector=random samples=all)
  sweep "${avg[@]}" deadline=fixed name=avg_1t rounds=50
  window=$(tail -n 1 "$logs"/runs/avg_1t-*-s"$seeds"/journal.jsonl |
    "$python" -c "import json; print(json.loads(input())['metrics']['time/virtual_s'])")
  in_window=(rounds=1000 until.virtual_s="$window")
  sweep "${avg[@]}" "${in_window[@]}" deadline=fixed deadline.k=2 name=avg_2t
  sweep "${avg[@]}" "${in_window[@]}" deadline=smartpc_quorum name=spc
  sweep "${avg[@]}" "${in_window[@]}" deadline=wait_for_all name=wfa
  sweep "${avg[@]}" "${in_window[@]}" deadline=fixed deadline.partial_work=true name=prox_1t
  sweep "${avg[@]}" "${in_window[@]}" deadline=fixed deadline.k=2 deadline.partial_work=true name=prox_2t
  sweep "${avg[@]}" "${in_window[@]}" samples=fedss_loss deadline=fixed deadline.partial_work=true name=fedss
  sweep "${har[@]}" "${in_window[@]}" name=fedbalancer
  # the code's Oort prefers those who are faster than 1T, by the power of 8
  sweep "${har[@]}" "${in_window[@]}" samples.as_released=true deadline.warmup=true deadline.grid=1 name=released \
    selector.preferred_in=seconds selector.preferred=212 selector.pacer=none selector.penalty=8
done
table "${MODEL:-har_cnn}" rows=name baseline=avg_1t target=best_of:avg_1t,avg_2t,spc,wfa
