"""The results of runs: one frame, and one definition of each statistic, which every page and command reads."""
