#!/bin/sh
# Makes random models once (some GB of disk, in build/bench) and compares Pleat with stock's own benchmark
# program on them. Run it on idle cores.
#
#   bench/run.sh                              a llama in three types; about half an hour
#   bench/run.sh architectures                decode and prefill of every other architecture, 12 pairs
#   bench/run.sh architectures qwen35-0.8b    of one of them
#   bench/run.sh --pairs 5                    any flag of bench/compare.py, last
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
dir=$top/build/bench
mkdir -p "$dir"
models=

# add <shape> <type>: the model of that shape, made and quantised unless it is there. The F16 file stays
# for the next type; sweep removes it.
add() {
    model=$dir/$1-$2.gguf
    models="$models $model"
    [ -s "$model" ] && return
    if [ ! -s "$dir/$1-F16.gguf" ]; then
        cmake --build "$top/build/release" -j 2 --target bench_model
        "$top/build/release/bench/bench_model" "$1" "$dir/$1-F16.gguf.part"
        mv "$dir/$1-F16.gguf.part" "$dir/$1-F16.gguf"
    fi
    "$top/scripts/stock.sh" llama-quantize "$dir/$1-F16.gguf" "$model.part" "$2" 2 >"$dir/quantize.log" 2>&1 ||
        { tail -n 5 "$dir/quantize.log" >&2; exit 1; }
    mv "$model.part" "$model"
}
sweep() { rm -f "$dir/$1-F16.gguf"; }

if [ "${1-}" != architectures ]; then
    for type in Q4_0 Q4_K_M Q8_0; do add llama-1b $type; done
    sweep llama-1b
    # shellcheck disable=SC2086
    exec python3 "$top/bench/compare.py" $models "$@"
fi

shift
wanted=
while [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; do
    wanted="$wanted $1"
    shift
done
# gemma3-1b's rows are no multiples of 256, so it is taken in the type that its makers publish.
for pair in qwen2-1.5b:Q4_K_M qwen3-1.7b:Q4_K_M qwen3moe-small:Q4_K_M gemma3-1b:Q4_0 qwen35-0.8b:Q4_K_M \
    qwen35moe-small:Q4_K_M gemma4-e2b-small:Q4_K_M; do
    shape=${pair%:*}
    case "$wanted " in
        ' ' | *" $shape "*) add "$shape" "${pair#*:}"; sweep "$shape" ;;
    esac
done
[ -n "$models" ] || { echo "bench/run.sh: no such shape:$wanted" >&2; exit 1; }
# shellcheck disable=SC2086
exec python3 "$top/bench/compare.py" $models --pairs 12 --only decode prefill "$@"
