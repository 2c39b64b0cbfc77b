"""Which clients train this round, one file per paper."""
