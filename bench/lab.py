#!/usr/bin/env python3
"""The lab against scoring plan by plan: exhaustive scan, successive halving, and baked files.

    bench/lab.py                    all parts; makes the random model once (build/bench, 0.3 GB)
    bench/lab.py --only scan        parts: scan halving stock recall

Every time is the wall clock of a whole process, loading included, with user + system time of all
its threads beside it: on a machine that does other things, too, compare those. What would take too
long is extrapolated from sampled plans, which run before and after what they are compared with.
"""
import argparse
import datetime
import json
import math
import os
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TEXT = TOP + "/models/demo-text.txt"
SHAPE = "llama-24l"
BUDGET = "0.2"
RECALL_BUDGETS = ["0.2", "0.3"]
CHUNKS = ["-c", "128", "--chunks", "16"]
TRAINED = TOP + "/models/pleat-demo-llama-16L-q4_0.gguf"


class Run:
    """One process: what it wrote, wall and CPU seconds, peak resident bytes."""

    def __init__(self, command):
        start = time.monotonic()
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                 env=dict(os.environ, OMP_WAIT_POLICY="passive"))
        self.out = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        self.wall = time.monotonic() - start
        self.cpu = usage.ru_utime + usage.ru_stime
        self.rss = usage.ru_maxrss * 1024
        if status != 0:
            sys.exit("failed (%d): %s" % (status, " ".join(command)))


class Total:
    """Seconds of some plans, and of all by what the plans cost: a ratio estimate."""

    def __init__(self):
        self.wall = self.cpu = self.cost = 0.0
        self.n = 0

    def add(self, run, cost, *more):
        for it in (run,) + more:
            self.wall += it.wall
            self.cpu += it.cpu
        self.cost += cost
        self.n += 1

    def of(self, cost):
        return self.wall / self.cost * cost, self.cpu / self.cost * cost


def scan_blocks(n_layer, max_block):
    """As `pleat scan` takes them: without the boundary layers."""
    edge = max(3, n_layer // 8)
    return [(i, j) for j in range(edge + 1, n_layer - edge + 1)
            for i in range(max(edge, j - max_block), j)]


def sample(blocks, n):
    """Spread over the list by length of the block."""
    by_length = sorted(blocks, key=lambda b: (b[1] - b[0], b))
    return [by_length[(2 * k + 1) * len(by_length) // (2 * n)] for k in range(n)]


def make_model(a):
    path = "%s/build/bench/%s-Q8_0.gguf" % (TOP, SHAPE)
    if os.path.exists(path):
        return path
    os.makedirs(os.path.dirname(path), exist_ok=True)
    f16 = path.replace("Q8_0", "F16")
    if not os.path.exists(a.maker):
        subprocess.run(["cmake", "--build", TOP + "/build/release", "-j", "2", "--target", "bench_model"],
                       check=True, stdout=subprocess.DEVNULL)
    subprocess.run([a.maker, SHAPE, f16], check=True)
    subprocess.run([TOP + "/scripts/stock.sh", "llama-quantize", f16, path + ".part", "Q8_0", "2"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.rename(path + ".part", path)
    os.remove(f16)
    return path


class Lab:
    def __init__(self, a):
        self.a = a
        self.dir = tempfile.mkdtemp(prefix="pleat-lab-")
        self.model = make_model(a)
        self.text = TEXT
        self.n_layer = 24
        self.blocks = scan_blocks(self.n_layer, 8)
        # n_embd 1024, K/V 256 wide, FFN 2816, vocabulary 32000 (bench/make_model.cpp).
        layer = 2 * 1024 * 1024 + 2 * 1024 * 256 + 3 * 1024 * 2816
        self.head = 32000 * 1024 / layer  # of one token, in layer passes

    def passes(self, block):
        return self.n_layer + block[1] - block[0]

    def alone_cost(self, block, share):
        """Layer passes and the head of one plan; the head sees that share of the rows."""
        return self.passes(block) + share * self.head

    def bound(self, share):
        alone = sum(self.alone_cost(b, share) for b in self.blocks)
        together = self.n_layer + sum(self.n_layer - b[0] for b in self.blocks)
        return alone, together + share * self.head * (len(self.blocks) + 1)

    def pleat(self, *words):
        return Run([self.a.pleat, words[0], self.model, "-q", "-t", str(self.a.threads)] + list(words[1:]))

    def alone(self, block, text):
        return self.pleat("perplexity", "-f", TEXT, *text, "--repeat-layers", "%d,%d" % block, "--json")

    def scan(self, text, *more):
        path = self.dir + "/scan.json"
        run = self.pleat("scan", "--text", self.text, *text, "--measures", "ppl", "--validation", "0",
                         "--report-json", path, *more)
        return run, json.load(open(path))

    def compare(self, what, run, total, cost, bar):
        wall, cpu = total.of(cost)
        print("%s: %.1f s wall, %.1f s CPU; plan by plan %.1f s wall, %.1f s CPU (from %d plans): "
              "%.2f times faster by wall, %.2f by CPU; bar %.2f%s"
              % (what, run.wall, run.cpu, wall, cpu, total.n, wall / run.wall, cpu / run.cpu, bar,
                 "" if wall / run.wall >= bar else "  <-- MISSED by wall"), flush=True)
        return wall, cpu

    def memory(self, run):
        size = os.path.getsize(self.model)
        budget = 1 << 30
        print("peak resident memory %.0f MiB: the file's %.0f and %.0f more, of a budget (--memory) of %.0f"
              % (run.rss / 2 ** 20, size / 2 ** 20, (run.rss - size) / 2 ** 20, budget / 2 ** 20)
              + ("" if run.rss <= size + budget else "  <-- OVER"), flush=True)

    def exhaustive(self):
        text = ["-c", "256", "--chunks", "1"]
        print("\n(a) %d blocks of up to 8 layers, 256 tokens, load average %s" % (len(self.blocks), load()))
        total = Total()
        found = {}
        some = sample(self.blocks, self.a.samples)
        half = len(some) // 2
        for block in some[:half]:
            found[block] = self.alone(block, text)
            total.add(found[block], self.alone_cost(block, 0.5))
        run, report = self.scan(text)
        for block in some[half:]:
            found[block] = self.alone(block, text)
            total.add(found[block], self.alone_cost(block, 0.5))
        alone, together = self.bound(0.5)
        passes = sum(map(self.passes, self.blocks))
        print("bound: %d / %d = %.2f by layer passes, %.2f with the head (%.2f passes a plan)"
              % (passes, self.n_layer + sum(self.n_layer - b[0] for b in self.blocks),
                 passes / (self.n_layer + sum(self.n_layer - b[0] for b in self.blocks)),
                 alone / together, 0.5 * self.head))
        self.compare("scan", run, total, alone, 0.9 * alone / together)
        values = {(r["begin"], r["end"]): r["scores"][0]["selection"]["value"] for r in report["rows"]}
        # Both add the same numbers in double, one by one and by items of 32: the last bits differ.
        worst = max(abs(math.log(json.loads(r.out)["perplexity"]) / values[b] - 1) for b, r in found.items())
        print("greatest relative difference of the negative log-likelihood over %d plans: %.1e%s"
              % (len(found), worst, "" if worst < 1e-13 else "  <-- NOT EQUAL"))
        self.memory(run)

    def halving(self):
        text = CHUNKS
        print("\n(b) successive halving, --budget %s, %d blocks, 16 chunks of 128 tokens, load average %s"
              % (BUDGET, len(self.blocks), load()))
        total = Total()
        some = sample(self.blocks, max(2, self.a.samples // 2))
        half = len(some) // 2
        for block in some[:half]:
            total.add(self.alone(block, text), self.alone_cost(block, 0.5))
        run, _ = self.scan(text, "--budget", BUDGET)
        for block in some[half:]:
            total.add(self.alone(block, text), self.alone_cost(block, 0.5))
        self.compare("halving", run, total, self.bound(0.5)[0], 5.0)
        self.memory(run)
        return run

    def stock(self, halving):
        n = 10
        print("\n(c) %d of %d plans baked and scored by llama-perplexity -c 128, load average %s"
              % (n, len(self.blocks), load()))
        total = Total()
        for block in sample(self.blocks, n):
            baked = self.dir + "/baked.gguf"
            made = Run([self.a.pleat, "bake", self.model, baked, "-q", "--force", "--repeat-layers", "%d,%d" % block])
            scored = Run([TOP + "/scripts/stock.sh", "llama-perplexity", "-m", baked, "-f", TEXT, *CHUNKS, "-t", str(self.a.threads)])
            total.add(made, self.alone_cost(block, 0.5), scored)
        os.remove(baked)
        self.compare("halving", halving, total, self.bound(0.5)[0], 10.0)

    def recall(self):
        """Of the trained model: what of the exhaustive ten best halving finds."""
        text = ["-c", "128", "--chunks", str(self.a.recall_chunks)]
        self.model = TRAINED
        # 100 KB that the model was not trained on (models/README.md).
        Run([sys.executable, TOP + "/models/training/corpus.py", "--probes", self.dir, "--seed", "9001"])
        self.text = self.dir + "/heldout.txt"
        print("\n(b) the trained 16-layer model, held-back text, %d chunks of 128 tokens" % self.a.recall_chunks)
        journal = self.dir + "/all.jsonl"
        whole, report = self.scan(text, "-o", journal)
        items = read_journal(journal)
        order = [r["canonical"] for r in report["rows"]]
        best = order[:10]
        tied = [p for p in order if p in best or no_worse(items[p], items[best[-1]])]
        print("%d blocks; exhaustive: %.1f s CPU; within one standard error of the tenth: %d"
              % (len(order), whole.cpu, len(tied)))
        for budget in RECALL_BUDGETS:
            good = 0
            for seed in range(1, 6):
                run, halved = self.scan(text, "--budget", budget, "--seed", str(seed))
                ten = [r["canonical"] for r in halved["rows"][:10]]
                exact = len(set(ten) & set(best))
                found = len(set(ten) & set(tied))
                good += found >= 9
                print("budget %s, seed %d: %.1f s CPU; of the ten best %d, with ties %d"
                      % (budget, seed, run.cpu, exact, found), flush=True)
            print("budget %s: seeds with at least 9: %d of 5%s" % (budget, good, "" if good >= 4 else "  <-- MISSED"))


def read_journal(path):
    """Negative log-likelihood by plan and item."""
    found = {}
    for line in open(path):
        record = json.loads(line)
        if "plan" not in record:
            continue
        nll = record["scores"]["nll"]
        sums, weights = found.setdefault(record["plan"], ([], []))
        sums += nll["sum"]
        weights += nll["weight"]
    return found


def no_worse(plan, other):
    """Is the plan worse by no more than one standard error of their difference, item by item?"""
    total = sum(plan[1])
    differences = [x - y for x, y in zip(plan[0], other[0])]
    mean = sum(differences) / total
    n = len(differences)
    spread = sum((d - mean * w) ** 2 for d, w in zip(differences, plan[1]))
    return mean <= math.sqrt(n / (n - 1) * spread) / total


def load():
    return "%.2f %.2f %.2f" % os.getloadavg()


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--pleat", default=TOP + "/build/release/pleat")
    ap.add_argument("--maker", default=TOP + "/build/release/bench/bench_model")
    ap.add_argument("-t", "--threads", type=int, default=2)
    ap.add_argument("--samples", type=int, default=12, help="plans that are run one by one")
    ap.add_argument("--recall-chunks", type=int, default=96)
    ap.add_argument("--only", choices=["scan", "halving", "stock", "recall"], nargs="*",
                    default=["scan", "halving", "stock", "recall"])
    a = ap.parse_args()
    cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "?")
    print("%s, %s, %d threads, load average %s" % (datetime.date.today(), cpu, a.threads, load()))
    lab = Lab(a)
    if "scan" in a.only:
        lab.exhaustive()
    if "halving" in a.only or "stock" in a.only:
        halving = lab.halving()
        if "stock" in a.only:
            lab.stock(halving)
    if "recall" in a.only:
        lab.recall()
    print("\nload average after: %s" % load())


if __name__ == "__main__":
    main()
