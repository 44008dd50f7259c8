"""Spark with our jar, in a process of its own that is asked through a pipe (Judge.java)."""

import json
import os
import pathlib
import subprocess
import tempfile

HERE = pathlib.Path(__file__).parent
JAR = os.environ.get("STOA_SPARK_JAR", str(HERE / "../../dist/stoa-spark.jar"))
VERSION = os.environ.get("STOA_SPARK_VERSION", "4.2.0")


class Failed(Exception):
    """A question that Spark could not answer; answer says why."""

    def __init__(self, answer):
        super().__init__(answer["error"])
        self.answer = answer


class Session:
    """A session of Spark; conf is what it is made with."""

    def __init__(self, master="local[2]", version=VERSION, **conf):
        self.work = tempfile.TemporaryDirectory(prefix="spark-judge-")
        self.errors = open(os.path.join(self.work.name, "errors"), "w+b")
        args = [str(HERE / "judge.sh"), version, JAR, self.work.name, master]
        self.process = subprocess.Popen(args + [f"{k.replace('__', '.')}={v}" for k, v in conf.items()],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)
        self.version = self.answer()["version"]
        self.names = 0

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            raise RuntimeError("Spark has ended: " + self.errors.read()[-4000:].decode(errors="replace"))
        return json.loads(line)

    def send(self, **question):
        self.process.stdin.write(json.dumps(question).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, **question):
        self.send(**question)
        a = self.answer()
        if "error" in a:
            raise Failed(a)
        return a

    def rows(self, sql, **more):
        return self.ask(sql=sql, **more)["rows"]

    def directory(self):
        self.names += 1
        return os.path.join(self.work.name, f"out{self.names}")

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.errors.close()
        self.work.cleanup()
