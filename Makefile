# make test: what one runs between two edits: every package, format and law, in a short form, on the golden files.
# make test-all, which CI does: all tests in full, with the whole corpus if STOA_CORPUS names it; then the short ones
# of the packages in which goroutines meet, with the race detector, which needs a C compiler.
# Both put their files in memory where they can.
GO ?= go
FUZZTIME ?= 1m
RACE ?= . ./internal/scan ./store/... ./vec
# Of other packages, the tests in which goroutines meet: scans by several workers, look-ups side by side, merged row groups, pieces and signals of
# the command, addresses, and the writers that encode columns side by side.
MEET ?= ./internal/laws ./cmd/stoa ./format/carbon ./format/cfile ./format/kudu ./format/parquet ./format/trevni
MEETING ?= ^Test(OverstatedRowGroups|MemoryBudget|CancelSoon|LookUpsKeepPages|SplitsAreTheScan|SplitsOfRealFiles|ConcurrentScans|$\
ConvertBetweenFormats|Cache|Addresses|FaultsOfStores|WritesToAddresses|LargeObjects|RefusedObject|KilledUpload|CutDirectory|AllToAddresses|$\
Hanging|InterruptLeavesNothing|Signal|KilledPieces|KilledRescue|ScriptsOfManyTables|ProgressLine|OldFormatWindows|SkipSegment|Sort|TableLoads|Loading|$\
ManyColumnsAtOnce|SetOfFiles|RandomStructs|GoldenTables|Order|Moments|CopiedPages|RowGroupsAreCut|SuiteWiki)$$

.PHONY: stoa test test-all fuzz lint poison soak attack flips dist release release-check vuln

# Tests wait (for locks, signals, files): more packages than processors run at a time.
TESTP ?= 4
test:
	.ci/in-memory $(GO) test -short -p $(TESTP) ./...

# The command, in this directory. It says how far it is: the first time compiles everything.
stoa:
	@GO='$(GO)' tools/build stoa ./cmd/stoa

# -count=1: else go test looks up every file that a test has opened, to know when its result still holds: after those of
# the command, which open some millions, for as long as the tests themselves took.
test-all:
	.ci/in-memory $(GO) test -count=1 -timeout 20m ./...
	STOA_CORPUS= CGO_ENABLED=1 .ci/in-memory $(GO) test -race -count=1 -short -timeout 20m $(RACE)
	STOA_CORPUS= CGO_ENABLED=1 .ci/in-memory $(GO) test -race -count=1 -short -timeout 20m -run '$(MEETING)' $(MEET)

lint:
	$(GO) vet ./...
	$(GO) tool -modfile=tools/go.mod staticcheck ./...

# Every fuzz target of every package, one after the other. FUZZTIME=10m make fuzz for longer. Without a bound most of the time goes into
# making inputs smaller that reached something new (up to a minute each, in which nothing else is tried).
# Each package is built once; what reached something new is kept where go test keeps it.
fuzz:
	@set -e; bin=$$(mktemp -d); trap 'rm -r "$$bin"' EXIT; cache=$$($(GO) env GOCACHE)/fuzz; \
	for d in $$(grep -rl '^func Fuzz' --include='*_test.go' . | xargs -n 1 dirname | sort -u); do \
	  p=$$($(GO) list $$d); $(GO) test -c -fuzz . -o $$bin/test $$p; \
	  for f in $$(grep -ho '^func Fuzz[A-Za-z0-9]*' $$d/*_test.go | sed 's/^func //'); do \
	    echo "== $$p $$f"; (cd $$d; $$bin/test -test.run '^$$' -test.fuzz "^$$f$$" -test.fuzztime $(FUZZTIME) -test.fuzzminimizetime 10x -test.fuzzcachedir $$cache/$$p); \
	  done; \
	done

# Released buffers are overwritten: whoever still reads them finds other values. (make test has them intact.)
poison:
	$(GO) test -tags poison -short . ./vec ./internal/scan ./stage ./advise ./internal/diff ./format/...

# Random tables round the ring of all formats, for as long as SOAK says.
SOAK ?= 20m
soak:
	STOA_SOAK=$(SOAK) $(GO) test ./internal/soak -v -timeout 0

# Damaged files of every format, and what every verb reports about them, for as long as FOR says.
FOR ?= 20m
attack:
	STOA_ATTACK=$(FOR) $(GO) test ./internal/attack -run TestAttack -v -timeout 0

# Bits, bytes and cuts of Parquet files of all encodings, codecs and encryptions: so many changes, of this seed.
FLIPS ?= 1000000
SEED ?= 1
flips:
	STOA_FLIPS=$(FLIPS) STOA_SEED=$(SEED) $(GO) test ./format/parquet -run TestFlipsAndCuts -v -timeout 0

# Everything a release consists of, in dist/: static commands for all platforms, archives, packages (deb, rpm), an OCI image, a formula for
# Homebrew, the Python wheel, the DuckDB extension and the Spark jar of this platform (without a C compiler, or a JDK and Maven, a line says what
# is left out), bills of materials, provenance and checksums. ONLY=linux/amd64 for one platform.
ONLY ?=
dist:
	$(GO) run -C internal/release . -root ../.. -o dist -only '$(ONLY)'

# Only the commands, with bills of materials and checksums.
release:
	$(GO) run -C internal/release . -root ../.. -o dist -commands -only '$(ONLY)'

# Two clones of the commit in two places, each built with a cache of its own, give the same bytes.
release-check:
	.ci/reproducible

# Known vulnerabilities in what is linked. Without the database (no network) it says so and does not fail.
vuln:
	.ci/vuln

# The Python wheel, in dist/: Go, a C compiler and Python, nothing else.
PYTHON ?= python3
.PHONY: wheel
wheel:
	$(PYTHON) python/backend/stoa_build.py dist

# The documents as a static site, in dist/site: Go, Python, and Sphinx of PyPI. Links are checked; the search works without a server.
.PHONY: site
site:
	[ -x docs/site/venv/bin/python ] || $(PYTHON) -m venv docs/site/venv
	docs/site/venv/bin/pip -q install --disable-pip-version-check -r docs/site/requirements.txt
	CGO_ENABLED=0 $(GO) build -o docs/site/venv/stoa ./cmd/stoa
	docs/site/venv/bin/python docs/site/build.py docs/site/venv/stoa dist/site

# stoa with a database, for `stoa sql`: Go, a C compiler and libstdc++; the module proxy gives DuckDB (31 MB). Beside ./stoa.
.PHONY: sql
sql:
	cd sql && CGO_ENABLED=1 $(GO) build -ldflags '-s -w' -o ../stoa-sql .

# What `stoa flight` runs. Pure Go; a module of its own for gRPC. Beside ./stoa.
.PHONY: flight
flight:
	cd flight && CGO_ENABLED=0 $(GO) build -ldflags '-s -w' -o ../stoa-flight .

# What `stoa mcp` runs. Pure Go; a module of its own for what its protocol depends on. Beside ./stoa.
.PHONY: mcp
mcp:
	cd mcp && CGO_ENABLED=0 $(GO) build -ldflags '-s -w' -o ../stoa-mcp .

# The extension for DuckDB, in dist/: Go and a C compiler. DuckDB loads it where extensions need not be signed. The wheels of
# DuckDB for Python before 1.3 call their platform linux_amd64_gcc4.
DUCKDB_PLATFORM ?= linux_amd64
DUCKDB_DIST ?= dist
.PHONY: duckdb
duckdb:
	mkdir -p $(DUCKDB_DIST)
	cd duckdb && CGO_ENABLED=1 $(GO) build -buildmode=c-shared -ldflags '-s -w' -o ../$(DUCKDB_DIST)/libstoa_duckdb.so .
	cd duckdb && $(GO) run ./footer ../$(DUCKDB_DIST)/libstoa_duckdb.so ../$(DUCKDB_DIST)/stoa.duckdb_extension "$$(git describe --tags --always)" $(DUCKDB_PLATFORM)
	rm $(DUCKDB_DIST)/libstoa_duckdb.so $(DUCKDB_DIST)/libstoa_duckdb.h

# The data source for Spark 3.3 to 4.x, in dist/: a JDK and Maven; Maven brings Spark 3.3 to compile against, the jar holds none of it.
MVN ?= mvn
.PHONY: spark
spark:
	$(MVN) -q -B -ntp -f spark/pom.xml package
	mkdir -p dist
	cp spark/target/stoa-spark.jar dist/
