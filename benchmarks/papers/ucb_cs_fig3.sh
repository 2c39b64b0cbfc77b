#!/usr/bin/env bash
# UCB-CS, Fig. 3: test accuracy and loss on Fashion-MNIST, Dirichlet 2 and 0.3; five paired seeds, 200 rounds.
. "$(dirname "$0")/setup.sh"
sweep experiment=ucb_cs_fig3 "${fashion[@]}" partition.alpha=2,0.3 selector=powd,rpowd,ucb_cs
sweep experiment=ucb_cs_fig3 "${fashion[@]}" partition.alpha=2,0.3 selector=random selector.weights=proportional
table accuracy metric=test/acc cols=partition.alpha baseline=random
table loss metric=clients/loss_mean cols=partition.alpha baseline=random
table best metric=test/acc_best cols=partition.alpha baseline=random
