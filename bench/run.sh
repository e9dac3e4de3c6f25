#!/bin/sh
# Makes the random models once (some GB of disk, in build/bench) and compares Pleat with stock's own
# benchmark program on them. Run it on idle cores; it takes about half an hour.
#
#   bench/run.sh                  all three types
#   bench/run.sh --pairs 5        any flag of bench/compare.py
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
dir=$top/build/bench
mkdir -p "$dir"
models=
for type in Q4_0 Q4_K_M Q8_0; do
    model=$dir/llama-1b-$type.gguf
    models="$models $model"
    [ -s "$model" ] && continue
    if [ ! -s "$dir/llama-1b-F16.gguf" ]; then
        cmake --build "$top/build/release" -j 2 --target bench_model
        "$top/build/release/bench/bench_model" llama-1b "$dir/llama-1b-F16.gguf"
    fi
    "$top/scripts/stock.sh" llama-quantize "$dir/llama-1b-F16.gguf" "$model.part" "$type" 2 >/dev/null 2>&1
    mv "$model.part" "$model"
done
rm -f "$dir/llama-1b-F16.gguf"
# shellcheck disable=SC2086
exec python3 "$top/bench/compare.py" $models "$@"
