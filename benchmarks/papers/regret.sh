#!/usr/bin/env bash
# How far selectors are from the greedy oracle, which tries every client in secret, and from its adversary: digits, 20
# clients, 4 a round, 20 rounds; five paired seeds. And the share of their picks that a uniform draw would have made.
. "$(dirname "$0")/setup.sh"
sweep experiment=regret selector=random,powd,ucb_cs,oort,fedcor,feel,flash,flash_literal,oracle_greedy,oracle_clean,worst
table regret metric=test/acc baseline=oracle_greedy
table overlap metric=select/uniform_overlap_mean baseline=random better=low
table departure metric=select/departure baseline=random better=low
