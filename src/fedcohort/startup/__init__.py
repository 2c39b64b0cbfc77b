"""The five steps of a run: compose, check, load, build and fit. Only this package and `jobs` import Hydra."""
