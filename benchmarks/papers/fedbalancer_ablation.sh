#!/usr/bin/env bash
# What earns FedBalancer's speed-up on UCI-HAR: client selection, samples, or deadline? All eight combinations, in the
# virtual time of 50 rounds of FedAvg+1T and in ten times that (TIMES=10: that alone); a perceptron, whose phones are as
# slow as the CNN's.
. "$(dirname "$0")/setup.sh"
har=(experiment=fedbalancer_har ${UCI_HAR:+dataset.path="$UCI_HAR"} eval.clients_every=0 model=mlp)
every=$seeds
short=10600  # seconds, 50 rounds of 212 s
for times in ${TIMES:-1 10}; do
  for selector in random oort; do
    for samples in all fedbalancer; do
      for deadline in fixed fedbalancer; do
        seeds=$every sweep "${har[@]}" selector=$selector samples=$samples deadline=$deadline deadline.partial_work=true \
          rounds=10000 until.virtual_s=$((short * times)) name="${selector}_${samples}_${deadline}_x$times" \
          eval.every=$((times > 1 ? 20 : 5))
      done
    done
  done
  table "x$times" rows=name filter="tags.name LIKE '%_x$times'" baseline="random_all_fixed_x$times" \
    target="best_of:random_all_fixed_x$times"
done
