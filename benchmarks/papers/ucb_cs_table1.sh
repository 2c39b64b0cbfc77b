#!/usr/bin/env bash
# UCB-CS, Table I: Jain's index of the clients' losses on Synthetic(1, 1), and the losses; five paired seeds, 800 rounds.
. "$(dirname "$0")/setup.sh"
sweep experiment=ucb_cs_table1 cohort=1,2,3 selector=powd,rpowd,ucb_cs
sweep experiment=ucb_cs_table1 cohort=1,2,3 selector=random selector.weights=proportional
table jain metric=clients/jain cols=cohort baseline=random
table loss metric=clients/loss_mean cols=cohort baseline=random
