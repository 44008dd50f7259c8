#!/usr/bin/env bash
# Iceberg's REST server registers what stoa wrote, and pyiceberg loads it from there.    usage: judge.sh STOA SRC
# needs mvn, java 17, and PYTHON (python3) with pyiceberg[pyarrow] 0.12; the server listens on port 8181
set -euo pipefail
stoa=$(realpath "$1") src=$2 here=$(cd "$(dirname "$0")" && pwd) catalogue=rest:http://127.0.0.1:8181
work=$(mktemp -d)
server=
trap 'rm -rf "$work"; [ -z "$server" ] || kill "$server"' EXIT
mvn -q -f "$here/pom.xml" dependency:copy-dependencies "-DoutputDirectory=$work/lib"
java -cp "$work/lib/*" org.apache.iceberg.rest.RESTCatalogServer 2>"$work/log" &
server=$!
for _ in $(seq 60); do curl -s -o "$work/config" http://127.0.0.1:8181/v1/config && break; sleep 1; done
"$stoa" convert "$src" --to iceberg -o "$work/t" -q --catalog "$catalogue#sales.eu.orders"
"$stoa" convert "$src" --to iceberg -o "$work/u" -q --catalog "$catalogue"
if "$stoa" convert "$src" --to iceberg -o "$work/v" -q --catalog "$catalogue#sales.eu.orders" 2>"$work/refused"; then echo "the name is taken, and was given" >&2; exit 1; fi
grep -q "there is a table sales.eu.orders already" "$work/refused" && [ ! -e "$work/v" ]
ROWS=$("$stoa" count "$src") "${PYTHON:-python3}" - <<'P'
import os
from pyiceberg.catalog.rest import RestCatalog
c = RestCatalog("r", uri="http://127.0.0.1:8181", **{"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"})
n = int(os.environ["ROWS"])
for name in (("sales", "eu", "orders"), ("default", "u")):
    t = c.load_table(name)
    assert t.scan().to_arrow().num_rows == n, name
    t.append(t.scan().to_arrow())
    assert c.load_table(name).scan().to_arrow().num_rows == 2 * n, name
P
[ "$("$stoa" count "$work/t")" = $((2 * $("$stoa" count "$src"))) ]
echo "the REST catalogue has both tables, and pyiceberg reads and appends to them"
