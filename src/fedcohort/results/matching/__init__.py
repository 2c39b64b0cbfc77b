"""Which runs are compared with which: runs of one setting, condition and seed."""
