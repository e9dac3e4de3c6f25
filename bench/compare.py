#!/usr/bin/env python3
"""Pleat against llama-bench of the same release, on the same file, in alternating pairs.

A pair is one run of each program, in an order that flips from pair to pair, so that a drift of the
machine's speed meets both alike. Ratios are taken within a pair; the median comes with a 95 %
interval from the order statistics of the pairs (binomial, no assumption on the distribution).
"""
import argparse
import datetime
import json
import math
import os
import platform
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def run(command):
    """Output and wall time; peak resident memory in bytes of the child."""
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit("failed (%d): %s" % (status, " ".join(command)))
    return out, time.monotonic() - start, usage.ru_maxrss * 1024


def stock(model, a, p, n):
    out, seconds, rss = run([TOP + "/scripts/stock.sh", "llama-bench", "-m", model, "-t", str(a.threads),
                             "-p", str(p), "-n", str(n), "-r", "1", "-o", "json"]
                             + (["--no-warmup"] if p else []))
    return json.loads(out)[0]["avg_ts"], seconds, rss


def pleat(model, a, p, n, specs=("",)):
    command = [a.pleat, "bench", model, "-q", "-t", str(a.threads), "-p", str(p), "-n", str(n),
               "-r", "1", "-o", "json"]
    if p:
        command.append("--no-warmup")  # a prompt is long enough to be its own
    for spec in specs:
        command += ["--spec", spec]
    out, seconds, rss = run(command)
    return json.loads(out), seconds, rss


def median(values):
    v = sorted(values)
    m = len(v) // 2
    return v[m] if len(v) % 2 else (v[m - 1] + v[m]) / 2


def interval(values):
    """95 % interval of the median: the order statistics k and n+1-k with k from the binomial."""
    v = sorted(values)
    n = len(v)
    k, tail = 0, 0.0
    while k < n // 2:
        tail += math.comb(n, k) / 2 ** n
        if 2 * tail > 0.05:
            break
        k += 1
    k = max(k - 1, 0)
    return v[k], v[n - 1 - k]


def row(name, ratios, ours, theirs, unit):
    low, high = interval(ratios)
    print("| %s | %.3f | %.3f to %.3f | %.2f | %.2f | %s | %d |"
          % (name, median(ratios), low, high, median(ours), median(theirs), unit, len(ratios)), flush=True)


def load():
    return "%.2f %.2f %.2f" % os.getloadavg()


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("models", nargs="+")
    ap.add_argument("--pleat", default=TOP + "/build/release/pleat")
    ap.add_argument("-t", "--threads", type=int, default=2)
    ap.add_argument("--pairs", type=int, default=20)
    ap.add_argument("-p", type=int, default=512)
    ap.add_argument("-n", type=int, default=32)
    ap.add_argument("--specs", nargs="*", default=["4,12", "drop:4..11", "layers:0..15,4..11[-attn]"],
                    help="plans whose time per token is held against the cost model")
    ap.add_argument("--only", choices=["decode", "prefill", "plans", "load"], nargs="*",
                    default=["decode", "prefill", "plans", "load"])
    a = ap.parse_args()
    cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "?")
    print("%s, %s, %d threads, load average before: %s\n"
          % (datetime.date.today(), cpu, a.threads, load()))
    for model in a.models:
        print("%s (%.0f MB)\n" % (os.path.basename(model), os.path.getsize(model) / 1e6))
        print("| what | pleat / stock | 95 % | pleat | stock | unit | pairs |")
        print("| --- | ---: | --- | ---: | ---: | --- | ---: |")
        rss = []
        for name, p, n in (("decode tg%d" % a.n, 0, a.n), ("prefill pp%d" % a.p, a.p, 0)):
            if name.split()[0] not in a.only:
                continue
            pairs = []
            for i in range(a.pairs):
                first = i % 2
                for side in (first, 1 - first):
                    if side:
                        s = stock(model, a, p, n)
                    else:
                        rows, seconds, memory = pleat(model, a, p, n)
                pairs.append((rows[0]["avg_ts"], s[0]))
                rss.append((memory, s[2]))
            row(name, [x / y for x, y in pairs], [x for x, _ in pairs], [y for _, y in pairs], "tokens/s")
        if rss:
            row("peak resident memory", [x / y for x, y in rss], [x / 2 ** 20 for x, _ in rss],
                [y / 2 ** 20 for _, y in rss], "MiB")
        if "load" in a.only:
            # One token each: wall time of a process is loading, repacking and little else.
            times = []
            for i in range(a.pairs):
                first = i % 2
                for side in (first, 1 - first):
                    if side:
                        s = stock(model, a, 0, 1)
                    else:
                        _, seconds, _ = pleat(model, a, 0, 1)
                times.append((seconds, s[1]))
            row("process with one token (load)", [x / y for x, y in times], [x for x, _ in times],
                [y for _, y in times], "s")
        if "plans" in a.only:
            print("\n| plan | predicted time / identity | measured | 95 % | measured / predicted | runs |")
            print("| --- | ---: | ---: | --- | ---: | ---: |")
            measured = {spec: [] for spec in a.specs}
            predicted = {}
            for _ in range(a.pairs):
                rows, _, _ = pleat(model, a, 0, a.n, [""] + a.specs)
                for spec, r in zip(a.specs, rows[1:]):
                    measured[spec].append(rows[0]["avg_ts"] / r["avg_ts"])
                    predicted[spec] = r["predicted_decode_ratio"]
            for spec in a.specs:
                low, high = interval(measured[spec])
                print("| %s | %.3f | %.3f | %.3f to %.3f | %.3f | %d |"
                      % (spec, predicted[spec], median(measured[spec]), low, high,
                         median(measured[spec]) / predicted[spec], a.pairs))
        print("\nload average after: %s\n" % load(), flush=True)


if __name__ == "__main__":
    main()
