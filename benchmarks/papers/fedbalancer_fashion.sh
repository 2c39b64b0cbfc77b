#!/usr/bin/env bash
# FedBalancer with other aggregators and compressed uploads, as in the paper's Fig. 7: 100 clients of Fashion-MNIST with 60
# samples each, 10 a round, phones, a small CNN; accuracy after 10,000 virtual seconds, and time to FedAvg+1T's.
# MODEL=mlp: a perceptron, 20,000 seconds.
. "$(dirname "$0")/setup.sh"
network=${MODEL:-cnn}
logs=$logs/$network
case $network in
  cnn) size=(model=cnn_two_layer "model.channels=[8,16]" rounds=10000 until.virtual_s=10000) ;;
  mlp) size=(model=mlp rounds=10000 until.virtual_s=20000) ;;
esac
base=("${fashion[@]}" dataset=fashion_mnist heterogeneity=noniid30 device=phones clients=100 cohort=10 split.limit=6400
  client.lr=0.05 client.batch=10 client.epochs=5 deadline.window_s=20 eval.every=5 eval.clients_every=0 "${size[@]}")
rows() {
  local prefix=$1
  shift
  sweep "${base[@]}" deadline=fixed name="${prefix}_1t" "$@"
  sweep "${base[@]}" deadline=fixed deadline.partial_work=true name="${prefix}_prox_1t" "$@"
  sweep "${base[@]}" selector=random samples=fedbalancer deadline=fedbalancer name="${prefix}_random" "$@"
  sweep "${base[@]}" selector=oort samples=fedbalancer deadline=fedbalancer name="${prefix}_fedbalancer" "$@"
  table "${network}_$prefix" rows=name filter="tags.name LIKE '${prefix}_%'" baseline="${prefix}_1t" \
    target="best_of:${prefix}_1t"
}
rows fedavg
rows scaffold agg=scaffold
rows qffl agg=qffl
# FedBalancer's code projects the finished update; trained in few directions, at this learning rate, models diverge
# (of rank 4, as no layer of the CNN has more outputs than the codec's default rank: it would send all of them whole)
rows lowrank codec=lowrank codec.mode=posthoc codec.dist=uniform01 codec.k=4 codec.min_size=64
