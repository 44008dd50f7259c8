#!/usr/bin/env bash
# Start one kudu-master and one kudu-tserver on loopback; wait until the tserver is registered and answers.
# usage: start.sh RUNDIR [extra tserver flags...]
# ONE=1: a server has a single directory, RUNDIR/NAME, instead of wal and data in it.
# env: BM=log|file (block manager), MPORT/TPORT/MWEB/TWEB (ports), MEXTRA (extra master flags), MORE="NAME:PORT:WEB …" (more tservers, in RUNDIR/NAME)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
run=$(mkdir -p "$1" && cd "$1" && pwd); shift
bm=${BM:-file}; mport=${MPORT:-17051}; tport=${TPORT:-17050}; mweb=${MWEB:-18051}; tweb=${TWEB:-18050}
home=$("$here/get.sh")
# SASL_PATH: the bundled PLAIN plugin. LD_LIBRARY_PATH: the bundled libkrb5 has no RUNPATH and would pick the distribution's libkrb5support.
export LD_LIBRARY_PATH=$home/lib SASL_PATH=$home/lib/sasl2
common=(--unlock_unsafe_flags --unlock_experimental_flags --time_source=system_unsync
  --rpc_authentication=disabled --rpc_encryption=disabled --webserver_interface=127.0.0.1
  --block_manager="$bm" --never_fsync=true --minloglevel=0 --logbuflevel=-1
  --fs_wal_dir_reserved_bytes=0 --fs_data_dirs_reserved_bytes=0 # no space is reserved
  --log_preallocate_segments=false --log_segment_size_mb=8 --log_container_preallocate_bytes=0
  # at start Kudu queries the cloud's instance metadata: send that to a closed local port
  --cloud_aws_instance_id_url=http://127.0.0.1:9/ --cloud_azure_instance_id_url=http://127.0.0.1:9/
  --cloud_gce_instance_id_url=http://127.0.0.1:9/ --cloud_openstack_metadata_url=http://127.0.0.1:9/)
logs=$run; [ -z "${ONE:-}" ] && mkdir -p "$run"/{master,tserver}/{wal,data,log} || { logs=$run/logs; mkdir -p "$logs"/{master,tserver}/log; }
# the flags for NAME's directories
dirs() { if [ -n "${ONE:-}" ]; then echo "--fs_wal_dir=$run/$1"; else echo "--fs_wal_dir=$run/$1/wal --fs_data_dirs=$run/$1/data"; fi; }
for p in master tserver; do
  [ ! -s "$run/$p.pid" ] || ! kill -0 "$(cat "$run/$p.pid")" 2>/dev/null || { echo "$p is already running" >&2; exit 1; }
done
"$home/bin/kudu-master" "${common[@]}" $(dirs master) \
  --log_dir="$logs/master/log" --rpc_bind_addresses=127.0.0.1:$mport --master_addresses=127.0.0.1:$mport \
  --webserver_port=$mweb --default_num_replicas=1 ${MEXTRA:-} </dev/null >"$run/master.out" 2>&1 &
echo $! >"$run/master.pid"
names="master"
for t in tserver:$tport:$tweb ${MORE:-}; do
  IFS=: read -r name port web <<<"$t"
  if [ -n "${ONE:-}" ]; then mkdir -p "$logs/$name/log"; else mkdir -p "$run/$name"/{wal,data,log}; fi
  names+=" $name"
  "$home/bin/kudu-tserver" "${common[@]}" $(dirs "$name") \
    --log_dir="$logs/$name/log" --rpc_bind_addresses=127.0.0.1:$port --tserver_master_addrs=127.0.0.1:$mport \
    --webserver_port=$web --memory_limit_hard_bytes=2147483648 "$@" </dev/null >"$run/$name.out" 2>&1 &
  echo $! >"$run/$name.pid"
done
for i in $(seq 1 240); do
  for p in $names; do
    kill -0 "$(cat "$run/$p.pid")" 2>/dev/null || { echo "$p died:" >&2; tail -5 "$run/$p.out" >&2; exit 1; }
  done
  if n=$("$home/bin/kudu" tserver list 127.0.0.1:$mport -format=csv 2>/dev/null | wc -l) && [ "$n" -ge $(($(wc -w <<<"$names") - 1)) ] &&
    "$home/bin/kudu" tserver status 127.0.0.1:$tport >/dev/null 2>&1; then
    echo "ready master=127.0.0.1:$mport tserver=127.0.0.1:$tport"; exit 0
  fi
  sleep 0.25
done
echo "not ready after 60 s" >&2; exit 1
