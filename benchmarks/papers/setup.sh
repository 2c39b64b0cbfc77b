# What the scripts of this folder share. Each runs its sweeps, which resume, and writes its tables beside itself.
#   SEEDS=0,1 benchmarks/papers/ucb_cs_table1.sh    FASHION_MNIST=folder, MNIST=folder: local copies of the data
#   JOBS=2 ...                                      runs beside each other, a thread each (the extra `sweep`)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
name=$(basename "$0" .sh)
python=${PYTHON:-.venv/bin/python}
logs=${LOGS:-logs/papers}/$name
seeds=${SEEDS:-0,1,2,3,4}
fashion=(${FASHION_MNIST:+dataset.path="$FASHION_MNIST"})
mnist=(${MNIST:+dataset.path="$MNIST"})
beside=(${JOBS:+hydra/launcher=local hydra.launcher.n_jobs="$JOBS"})

# sweep WORDS...: one multirun over the seeds
sweep() {
  "$python" train.py -m "${beside[@]}" "$@" seed="$seeds" resume=true paths.logs="$logs" trainer=cpu \
    callback.progress=null callback.figures=null callback.summary=null sweep.report=false
}

# table WORD OPTIONS...: benchmarks/papers/<name>/<word>/
table() {
  local out=benchmarks/papers/$name/$1
  shift
  "$python" -m fedcohort compare tracking_uri=sqlite:///"$logs"/mlflow.db out="$out" curves=false "$@"
}
