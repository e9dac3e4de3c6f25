#!/usr/bin/env python3
"""Decodes one sequence of each of many plans together and plan by plan, and asks stock's batched
benchmark what as many sequences of one model gain on the same file. Rounds alternate; ratios are
taken within a round.

    bench/lab_generate.py build/bench/llama-24l-Q8_0.gguf
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def run(command):
    env = dict(os.environ, OMP_WAIT_POLICY="passive")
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command[:3])} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def blocks(n_plans, n_layer):
    """Different short blocks of 1, 2, ... layers, the first and last few layers left out."""
    edge = max(3, n_layer // 8)
    found = []
    for length in range(1, n_layer):
        for begin in range(edge, n_layer - edge - length + 1):
            found.append(f"{begin},{begin + length}")
            if len(found) == n_plans:
                return found
    sys.exit(f"{n_layer} layers have no {n_plans} blocks")


def pleat(args, mode, specs):
    command = [args.program, mode, args.model, str(args.threads), str(args.prompt), str(args.tokens)]
    return json.loads(run(command + specs).splitlines()[-1])


def stock(args, n):
    out = run([f"{TOP}/scripts/stock.sh", "llama-batched-bench", "-m", args.model, "-t", str(args.threads),
               "-c", str(n * max(256, args.prompt + args.tokens)), "-npp", str(args.prompt), "-ntg",
               str(args.tokens), "-npl", str(n), "--output-format", "jsonl"])
    rows = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return rows[-1]["speed_tg"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--program", default=f"{TOP}/build/release/bench/bench_plan_decode")
    parser.add_argument("--plans", type=int, default=32)
    parser.add_argument("--layers", type=int, default=24, help="of the model")
    parser.add_argument("--alone", type=int, default=8, help="plans that are sampled for plan by plan")
    parser.add_argument("--prompt", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    specs = blocks(args.plans, args.layers)
    sample = specs[:: max(1, args.plans // args.alone)][: args.alone]
    rounds = []
    print(f"load average {os.getloadavg()[0]:.2f}")
    for _ in range(args.rounds):
        together = pleat(args, "together", specs)
        alone = pleat(args, "alone", sample)
        many, one = stock(args, args.plans), stock(args, 1)
        gain = together["tokens_per_second"] / alone["tokens_per_second"]
        rounds.append((gain, many / one, gain / (many / one)))
        print(f"pleat {together['tokens_per_second']:.1f} / {alone['tokens_per_second']:.1f} = {gain:.2f} "
              f"(by CPU time {together['tokens_per_cpu_second'] / alone['tokens_per_cpu_second']:.2f}), "
              f"stock {many:.1f} / {one:.1f} = {many / one:.2f}, of which pleat has "
              f"{rounds[-1][2]:.2f}; {together['bytes'] / 2**20:.0f} MiB; "
              f"load average {os.getloadavg()[0]:.2f}", flush=True)
    medians = [statistics.median(r[i] for r in rounds) for i in range(3)]
    print(f"median of {len(rounds)}: pleat {medians[0]:.2f}, stock {medians[1]:.2f}, "
          f"of which pleat has {medians[2]:.2f} (bar 0.8)")


if __name__ == "__main__":
    main()
