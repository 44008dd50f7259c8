"""The five queries over one CarbonData table by Spark with stoa, and by CarbonData's own Spark integration.

usage: carbon.py [ROWS]. CarbonData 2.3.0 runs on Spark 3.1.1 and Java 11, the newest that it takes; stoa on the Spark
of STOA_SPARK_VERSION. Both have one task at a time, are warm, and take turns; the best of five is taken. Answers are
compared before anything is measured.
"""

import json
import math
import os
import shutil
import subprocess
import sys

import bench
import session

HERE = os.path.dirname(os.path.abspath(__file__))
PEER = os.path.join(HERE, "../../interop/carbon-spark/sql.sh")


class Peer:
    """CarbonData's own Spark, asked through a pipe."""

    def __init__(self, store):
        self.process = subprocess.Popen([PEER, store, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.DEVNULL)

    def rows(self, sql):
        self.process.stdin.write(sql + "\n")
        self.process.stdin.flush()
        out = []
        for line in self.process.stdout:
            if line.startswith("!!"):
                raise RuntimeError(line)
            if line.startswith("== end"):
                return out
            if not line.startswith("== "):
                out.append(line.strip())
        raise RuntimeError("CarbonData has ended")

    def java(self):
        """The process below the script that runs it."""
        out = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], stdout=subprocess.PIPE, check=True)
        return int(out.stdout.split()[0])

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)


def prepare(n, at):
    """A store with the rows as one table, which is loaded once."""
    places, store = bench.prepare(n, at), f"{at}/store"
    if not os.path.exists(f"{at}/store-ready"):
        shutil.rmtree(store, ignore_errors=True)
        subprocess.run(["stoa", "create", "-q", f"{store}#default.rows", "--schema", places["Parquet"],
                        "--sort-columns", "key"], check=True)
        subprocess.run(["stoa", "load", "-q", f"{store}#default.rows", places["Parquet"]], check=True)
        open(f"{at}/store-ready", "w").close()
    return os.path.join(store, "default")


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000
    store = prepare(n, os.path.join(HERE, "data", str(n)))
    peer, ours = Peer(store), session.Session("local[1]")
    ours.ask(load=f"{store}/rows", view="rows")
    peer.rows("select 1 x")
    java = peer.java()
    same = lambda rows: sorted(json.dumps(json.loads(r), sort_keys=True) for r in rows)
    print(f"{n:,} rows in a CarbonData table, one task, warm, best of {bench.ROUNDS}, {bench.WHAT}")
    print(f"| query | CarbonData on Spark 3.1.1 | stoa on Spark {ours.version} | |\n|---|---|---|---|")
    mean = 0.0
    for query, text in bench.QUERIES.items():
        sql = text.format("rows", lo=n, hi=n + 3 * n // 1000)
        theirs, got = same(peer.rows(sql)), same(ours.rows(sql))
        assert theirs == got, f"{query}: {theirs[:3]}, {got[:3]}"
        best = [math.inf, math.inf]
        for i in range(bench.ROUNDS + 1):
            took = (bench.took(java, lambda: peer.rows(sql)), bench.took(ours.process.pid, lambda: ours.ask(sql=sql)))
            best = [min(a, b) for a, b in zip(best, took)] if i else best
        mean += math.log(best[0] / best[1]) / len(bench.QUERIES)
        print(f"| {query} | {best[0]:.2f} | {best[1]:.2f} | {best[0] / best[1]:.2f}× |", flush=True)
    print(f"| geometric mean | | | {math.exp(mean):.2f}× |")
    peer.close()
    ours.close()


if __name__ == "__main__":
    main()
