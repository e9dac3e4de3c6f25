#!/usr/bin/env python3
"""`pleat serve` against llama-server of the same release, on the same file, under 1, 4 and 16 clients.

Each client sends one request after another over loopback and reads its answer token by token. A pair
is one round with each server, in an order that flips from pair to pair; both run from the beginning
to the end, and the one that is not asked sleeps. Prompts are random tokens, different in every request
and the same ones for both servers, so that no cache helps; answers have a fixed length.

Throughput is tokens of all answers over the round's time, prompts included. The time between tokens is
taken where a client meets it: p99 over all gaps between two events of one answer.
"""
import argparse
import concurrent.futures
import http.client
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time

from compare import TOP, interval, load, median


class Server:
    """A server on a port of its own, from when it is ready to when the block ends."""

    def __init__(self, name, command):
        self.name = name
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.log = tempfile.NamedTemporaryFile("w+", prefix="serve-%s-" % name, suffix=".log")
        self.child = subprocess.Popen(command + ["--host", "127.0.0.1", "--port", str(self.port)],
                                      stdout=self.log, stderr=subprocess.STDOUT)

    def __enter__(self):
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline:
            if self.child.poll() is not None:
                break
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return self
            except OSError:
                pass
            time.sleep(0.2)
        self.__exit__()
        self.log.seek(0)
        sys.exit("%s is not ready:\n%s" % (self.name, self.log.read()[-2000:]))

    def __exit__(self, *_):
        self.child.terminate()
        try:
            self.child.wait(30)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()

    def answer(self, prompt, n):
        """Tokens of one answer, and the seconds between its events."""
        body = json.dumps({"prompt": prompt, "n_predict": n, "ignore_eos": True, "stream": True,
                           "cache_prompt": False, "temperature": 0.8, "seed": len(prompt)})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request("POST", "/completion", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            sys.exit("%s: %d %s" % (self.name, response.status, response.read(500)))
        gaps, last, final = [], None, {}
        for line in response:
            if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
                continue
            now = time.monotonic()
            final = json.loads(line[6:])
            if last is not None and not final.get("stop"):
                gaps.append(now - last)
            last = now
        connection.close()
        n_predicted = final["tokens_predicted"]
        if n_predicted != n:
            sys.exit("%s: %d tokens came, %d were asked for" % (self.name, n_predicted, n))
        return n_predicted, gaps


def round_of(server, n_clients, prompts, n):
    """Tokens per second, and the gaps."""
    waiting = list(prompts)
    lock = threading.Lock()

    def client():
        tokens, gaps = 0, []
        while True:
            with lock:
                if not waiting:
                    return tokens, gaps
                prompt = waiting.pop()
            more, new_gaps = server.answer(prompt, n)
            tokens += more
            gaps += new_gaps

    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(n_clients) as pool:
        results = [f.result() for f in [pool.submit(client) for _ in range(n_clients)]]
    seconds = time.monotonic() - start
    return sum(t for t, _ in results) / seconds, [g for _, gaps in results for g in gaps]


def p99(values):
    v = sorted(values)
    return v[min(len(v) - 1, int(0.99 * len(v)))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", help="a GGUF file with a tokenizer")
    parser.add_argument("--pleat", default=TOP + "/build/release/pleat")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--requests", type=int, default=2, help="of each client in a round")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--prompt", type=int, default=128, help="tokens of a prompt, +- a half")
    parser.add_argument("--predict", type=int, default=32, help="tokens of an answer")
    parser.add_argument("--ubatch", type=int, help="of both; default: each server's own")
    parser.add_argument("--vocabulary", type=int, default=32000, help="prompts are of lower tokens")
    a = parser.parse_args()

    n_slots = max(a.clients)
    n_ctx = (2 * a.prompt + a.predict + 255) // 256 * 256
    same = ["-m", a.model, "-t", str(a.threads), "-np", str(n_slots)]
    if a.ubatch:
        same += ["-ub", str(a.ubatch)]
    # llama-server shares its -c out among the slots, Pleat's is one slot's.
    ours = [a.pleat, "serve"] + same + ["-c", str(n_ctx)]
    theirs = [TOP + "/scripts/stock.sh", "llama-server"] + same + ["-c", str(n_ctx * n_slots)]
    print("%s, %d threads, prompts of %d to %d tokens, answers of %d; load average %s before"
          % (os.path.basename(a.model), a.threads, a.prompt // 2, a.prompt * 3 // 2, a.predict, load()))
    print("\n| clients | pleat / stock | 95 % | pleat, tokens/s | stock, tokens/s "
          "| pleat, p99 between tokens, ms | stock, ms | pairs |\n| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    rng = random.Random(1)
    with Server("pleat", ours) as pleat, Server("stock", theirs) as stock:
        for server in (pleat, stock):  # touches the weights
            round_of(server, 1, [[1] * a.prompt], a.predict)
        for n_clients in a.clients:
            speeds, gaps = {"pleat": [], "stock": []}, {"pleat": [], "stock": []}
            for pair in range(a.pairs):
                prompts = [[rng.randrange(a.vocabulary) for _ in range(rng.randint(a.prompt // 2, a.prompt * 3 // 2))]
                           for _ in range(n_clients * a.requests)]
                for server in (pleat, stock) if pair % 2 else (stock, pleat):
                    speed, new_gaps = round_of(server, n_clients, prompts, a.predict)
                    speeds[server.name].append(speed)
                    gaps[server.name] += new_gaps
            ratios = [x / y for x, y in zip(speeds["pleat"], speeds["stock"])]
            low, high = interval(ratios)
            print("| %d | %.3f | %.3f to %.3f | %.2f | %.2f | %.0f | %.0f | %d |"
                  % (n_clients, median(ratios), low, high, median(speeds["pleat"]), median(speeds["stock"]),
                     1000 * p99(gaps["pleat"]), 1000 * p99(gaps["stock"]), a.pairs), flush=True)
    print("\nload average %s after" % load())


if __name__ == "__main__":
    main()
