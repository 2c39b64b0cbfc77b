#!/usr/bin/env bash
# Accuracy that the datasets and networks reach with FedAvg and random selection, nothing skewed but the natural clients:
# what an installation can be compared with before its own method is. 100 clients, 10 a round, 1 epoch, 30 rounds; UCI-HAR
# has its 21 people, 5 a round and 50 rounds, Shakespeare a twentieth of the samples and one LSTM of 64 units, 10 roles a round.
. "$(dirname "$0")/setup.sh"
few=(eval.every=5 eval.clients_every=0 callback.figures=null)
iid=(heterogeneity=iid clients=100 cohort=10 client.epochs=1 rounds=30 "${few[@]}")
images=("${iid[@]}" client.batch=10 client.lr=0.05)
sweep "${images[@]}" dataset=mnist "${mnist[@]}" model=cnn name=mnist_cnn
sweep "${images[@]}" dataset=fashion_mnist "${fashion[@]}" model=cnn name=fashion_mnist_cnn
colour=("${iid[@]}" dataset=cifar10 ${CIFAR10:+dataset.path="$CIFAR10"} client.batch=32 client.lr=0.1)
sweep "${colour[@]}" model=cnn name=cifar10_cnn
sweep "${colour[@]}" model=resnet8_gn name=cifar10_resnet8_gn
sweep dataset=uci_har ${UCI_HAR:+dataset.path="$UCI_HAR"} model=har_cnn clients=null cohort=5 client.batch=10 \
  client.lr=0.005 client.epochs=1 rounds=50 "${few[@]}" name=uci_har_cnn
sweep dataset=shakespeare ${SHAKESPEARE:+dataset.path="$SHAKESPEARE"} dataset.users=0.05 dataset.test=user model=char_lstm \
  model.hidden=64 model.layers=1 clients=null cohort=10 client.batch=100 client.lr=0.8 client.epochs=1 rounds=50 \
  data_seed=0 "${few[@]}" name=shakespeare_lstm # the same people for all seeds
for each in mnist_cnn fashion_mnist_cnn cifar10_cnn cifar10_resnet8_gn uci_har_cnn shakespeare_lstm; do
  table "$each" rows=name metric=test/acc,test/loss filter="tags.name = '$each'"
done
