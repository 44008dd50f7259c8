#!/usr/bin/env bash
# Stop the servers that start.sh started in RUNDIR, by their pid files. usage: stop.sh RUNDIR
set -u
run=$1
for f in "$run"/t*.pid "$run"/master.pid; do
  [ -s "$f" ] || continue
  pid=$(cat "$f")
  case "$(cat "/proc/$pid/comm" 2>/dev/null)" in kudu*) ;; *) rm -f "$f"; continue;; esac
  kill -TERM "$pid" 2>/dev/null
  for i in $(seq 1 120); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
  kill -0 "$pid" 2>/dev/null && kill -KILL "$pid"
  rm -f "$f"
done
exit 0
