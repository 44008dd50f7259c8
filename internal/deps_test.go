// Package internal_test holds the policy of allowed imports.
package internal_test

import (
	"bytes"
	"encoding/json"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// policy has one line per rule: a package, or a pattern ending in /..., and the packages of stoa and of others that it
// may import. The first line that matches a package applies. "stoa/x/..." means x and everything below it. Imports of
// tests are not checked.
//
//	std        the standard library only, and internal/sorted, which stands for functions of package slices
//	arrow      arrow-go's arrays, types, memory (never arrow/compute)
//	anything   no rule for third parties
//	noformat   anything but a format: the command knows them by one list
//	x/*        the packages in x, but not those below them; a format without a line of its own has that of format/*
//	-x         never x, whatever comes after it
const policy = `
stoa/fault                : std
stoa/region               : std fault
stoa/wire                 : std fault region internal/budget
stoa/internal/budget      : std fault
stoa/internal             : std
stoa/examples/indexed     : std arrow stoa
stoa/corpus/releases/next : anything
stoa/internal/sum         : std
stoa/internal/sorted      : std
stoa/internal/sqltext     : std
stoa/internal/enc/...     : std fault internal/enc/... github.com/pierrec/lz4/... golang.org/x/sys/cpu
stoa/internal/codec       : std fault github.com/pierrec/lz4/... github.com/klauspost/compress/...
  github.com/golang/snappy
stoa/internal/bloom       : std fault
stoa/internal/pb          : std fault wire region
stoa/internal/kudugen     : std
stoa/vec                  : std fault arrow
stoa/internal/civil       : std
stoa/pred                 : std fault vec arrow internal/civil internal/enc/half
  pred/internal/...
stoa/pred/internal/literal: std arrow internal/civil
stoa/pred/internal/syntax : std fault pred/internal/literal github.com/mattn/go-runewidth
stoa/pred/internal/scalar : std fault arrow internal/civil internal/enc/half pred/internal/literal
stoa/store                : std fault
stoa/store/faulty         : std store
stoa/store/remote         : std fault store
stoa/store/remote/remotetest: std
stoa/store/s3             : std store store/remote github.com/minio/... gopkg.in/ini.v1
stoa/store/web            : std store store/remote
stoa/store/hdfs           : std store store/remote github.com/colinmarc/hdfs/v2/... github.com/jcmturner/gokrb5/v8/...
stoa/format               : std arrow fault internal/budget pred region store vec
stoa/format/option        : std fault format
stoa/format/formattest    : anything
stoa/format/formattest/toy: std arrow fault format store vec
stoa/internal/scan/internal/arrays : std arrow fault vec
stoa/internal/scan/internal/plan   : std arrow fault format pred region vec internal/nest
  internal/scan/internal/arrays
stoa/internal/scan/internal/fetch  : std arrow fault format store vec internal/scan/internal/plan
stoa/internal/scan/internal/emit   : std arrow region vec internal/scan/internal/arrays internal/scan/internal/plan
stoa/internal/scan/internal/window : std arrow fault format pred region vec internal/nest
  internal/scan/internal/arrays internal/scan/internal/plan internal/scan/internal/fetch internal/scan/internal/emit
stoa/internal/scan/internal/batches: std arrow fault format region vec internal/scan/internal/arrays
  internal/scan/internal/plan internal/scan/internal/emit internal/scan/internal/window
stoa/internal/scan        : std arrow fault format pred region store vec internal/scan/... internal/share
stoa/internal/rows        : std arrow fault format pred store vec internal/scan
stoa/internal/thrift      : std fault wire region
stoa/internal/effort      : std
stoa/internal/extremes    : std arrow vec
stoa/internal/arrowschema : std arrow fault format format/ipc/flat github.com/apache/arrow-go/v18/arrow/ipc
stoa/internal/cells       : std arrow fault internal/civil internal/enc/half
stoa/internal/claims      : std fault
stoa/internal/diff        : std arrow fault internal/cells internal/enc/half
stoa/internal/typewords   : std arrow fault format
stoa/internal/content   : std arrow internal/diff internal/enc/half github.com/zeebo/xxh3
stoa/internal/alter     : std arrow fault format
stoa/internal/altered   : std arrow fault format internal/content
stoa/internal/fit       : std arrow region internal/coerce
stoa/internal/address   : std fault format region store store/remote
stoa/internal/workcopy  : std arrow fault format store store/remote
stoa/internal/check     : std fault region
stoa/internal/describe  : std fault region
stoa/internal/health    : std fault format region store vec internal/check internal/describe internal/scan
  internal/sorted
stoa/internal/laws      : std
stoa/internal/exported   : std arrow
stoa/internal/fieldnames : std arrow fault region internal/cells internal/settle
stoa/internal/parts     : std fault format region store
stoa/internal/share     : std fault store
stoa/internal/watched   : std region store
stoa/internal/foreign   : std format store
stoa/internal/parked    : std arrow fault format region vec
stoa/internal/positions : std fault format region vec internal/scan
stoa/internal/glob      : std fault store
stoa/internal/seal      : std region store github.com/zeebo/xxh3 github.com/klauspost/reedsolomon
stoa/internal/coerce      : std arrow
stoa/internal/settle      : std arrow internal/coerce internal/nest
stoa/internal/nest        : std arrow fault format vec
stoa/internal/present     : std arrow fault vec internal/enc/half
stoa/internal/dremel      : std arrow fault vec internal/enc/...
stoa/format/kudu/internal/pbc: std fault format internal/budget region store wire internal/pb internal/sum
stoa/format/kudu/internal/codes: std fault region internal/check format/kudu/internal/pbc
stoa/format/kudu/internal/meta: std arrow fault store vec wire format/cfile format/option internal/pb
  format/kudu/internal/pbc
stoa/format/kudu/internal/fs: std fault format internal/budget region store wire format/cfile internal/pb
  format/kudu/internal/pbc format/kudu/internal/codes format/kudu/internal/meta
stoa/format/kudu/internal/wal: std fault format region store vec wire format/cfile internal/pb internal/codec
  internal/sum format/kudu/internal/pbc format/kudu/internal/codes format/kudu/internal/meta format/kudu/internal/fs
stoa/format/kudu/internal/table: std arrow fault format format/option pred region store vec format/cfile
  format/kudu/internal/codes format/kudu/internal/meta format/kudu/internal/fs format/kudu/internal/wal
stoa/format/kudu/internal/cluster: std fault format region store wire format/cfile internal/pb
  format/kudu/internal/codes format/kudu/internal/meta format/kudu/internal/fs format/kudu/internal/wal
  format/kudu/internal/table
stoa/format/kudu          : std internal/check internal/describe fault format region store vec format/cfile
  format/kudu/...
stoa/format/trevni/internal/bzip2: std
stoa/format/trevni/internal/layout: std arrow fault format region vec wire internal/check internal/codec internal/sum
stoa/format/trevni/internal/container: std fault format region store vec wire format/trevni/internal/layout
stoa/format/trevni/internal/page: std internal/coerce arrow fault format vec internal/enc/...
  format/trevni/internal/layout
  format/trevni/internal/container
stoa/format/trevni/internal/schema: std arrow fault format internal/nest format/trevni/internal/layout
  format/trevni/internal/container format/trevni/internal/page
stoa/format/trevni/internal/table: std arrow fault format format/option pred region store vec internal/check
  internal/nest
  internal/typewords format/trevni/internal/layout format/trevni/internal/container format/trevni/internal/page
  format/trevni/internal/schema
stoa/format/trevni/internal/write: std internal/coerce arrow fault format format/option store internal/codec
  internal/enc/...
  internal/nest
  format/trevni/internal/bzip2 format/trevni/internal/layout format/trevni/internal/page
  format/trevni/internal/schema format/trevni/internal/table
stoa/format/trevni        : std arrow fault format pred region store vec wire internal/check internal/describe
  internal/nest internal/rows format/trevni/...
stoa/format/redfile/internal/unpack: std fault internal/codec internal/enc/... github.com/klauspost/compress/...
stoa/format/redfile/internal/layout: std fault format format/option region store wire internal/check internal/thrift
stoa/format/redfile/internal/schema: std arrow fault format vec internal/arrowschema internal/dremel
  internal/enc/... internal/nest format/redfile/internal/unpack format/redfile/internal/layout
stoa/format/redfile/internal/container: std fault format region store wire internal/thrift internal/claims
  format/redfile/internal/layout format/redfile/internal/schema
stoa/format/redfile/internal/page: std arrow fault format pred store vec wire internal/codec internal/dremel
  internal/nest
  internal/enc/... internal/thrift format/redfile/internal/unpack format/redfile/internal/layout
  format/redfile/internal/schema format/redfile/internal/container
stoa/format/redfile/internal/write: std arrow fault format format/option store internal/codec internal/enc/...
  internal/nest
  internal/thrift format/redfile/internal/unpack format/redfile/internal/layout format/redfile/internal/schema
stoa/format/redfile/internal/table: std arrow fault format pred region store vec wire internal/check internal/nest
  internal/typewords internal/parts format/redfile/internal/layout format/redfile/internal/schema
  format/redfile/internal/container format/redfile/internal/page
stoa/format/redfile/internal/recovery: std fault format region wire internal/check internal/thrift
  format/redfile/internal/layout format/redfile/internal/schema format/redfile/internal/container
  format/redfile/internal/table
stoa/format/redfile       : std pred arrow fault format region store vec wire internal/check internal/describe
  internal/enc/... internal/nest internal/thrift internal/rows format/redfile/...
stoa/format/carbon/internal/layout: std internal/check arrow fault format pred region store vec wire internal/civil
  internal/arrowschema internal/nest internal/thrift internal/enc/... internal/codec internal/sum
  github.com/RoaringBitmap/... github.com/apache/arrow-go/v18/arrow/ipc
stoa/format/carbon/internal/schema: std internal/coerce arrow fault format format/option pred region store vec wire
  internal/civil
  internal/arrowschema internal/nest internal/thrift internal/enc/... internal/codec internal/sum
  github.com/RoaringBitmap/... github.com/apache/arrow-go/v18/arrow/ipc format/carbon/internal/layout
stoa/format/carbon/internal/status: std arrow fault format internal/budget pred region store vec wire
  internal/civil internal/arrowschema internal/nest internal/thrift internal/enc/... internal/codec internal/sum
  github.com/RoaringBitmap/... github.com/apache/arrow-go/v18/arrow/ipc format/carbon/internal/layout
  format/carbon/internal/schema
stoa/format/carbon/internal/dict: std arrow fault format pred region store vec wire internal/civil
  internal/arrowschema internal/nest internal/thrift internal/enc/... internal/codec internal/sum
  github.com/RoaringBitmap/... github.com/apache/arrow-go/v18/arrow/ipc format/carbon/internal/layout
  format/carbon/internal/schema format/carbon/internal/status
stoa/format/carbon/internal/page: std internal/coerce arrow fault format pred region store vec wire internal/civil
  internal/arrowschema internal/nest internal/thrift internal/enc/... internal/codec internal/sum
  github.com/RoaringBitmap/... github.com/apache/arrow-go/v18/arrow/ipc format/carbon/internal/layout
  format/carbon/internal/schema format/carbon/internal/status format/carbon/internal/dict
stoa/format/carbon/internal/datafile: std internal/check arrow fault format pred region store vec wire internal/civil
  internal/arrowschema internal/nest internal/thrift internal/enc/... internal/codec internal/sum
  github.com/RoaringBitmap/... github.com/apache/arrow-go/v18/arrow/ipc format/carbon/internal/layout
  format/carbon/internal/schema format/carbon/internal/status format/carbon/internal/dict format/carbon/internal/page
stoa/format/carbon/internal/table: std internal/check arrow fault format format/option pred region store vec wire
  internal/civil
  internal/arrowschema internal/nest internal/thrift internal/enc/... internal/codec internal/sum
  github.com/RoaringBitmap/... github.com/apache/arrow-go/v18/arrow/ipc format/carbon/internal/layout
  format/carbon/internal/schema format/carbon/internal/status format/carbon/internal/dict
  format/carbon/internal/page format/carbon/internal/datafile
stoa/format/carbon/internal/change: std arrow fault format format/option pred region store vec wire internal/civil
  internal/arrowschema internal/nest internal/thrift internal/enc/... internal/codec internal/sum
  github.com/RoaringBitmap/... github.com/apache/arrow-go/v18/arrow/ipc format/carbon/internal/layout
  format/carbon/internal/schema format/carbon/internal/status format/carbon/internal/dict
  format/carbon/internal/page format/carbon/internal/datafile format/carbon/internal/table
stoa/format/carbon/internal/since: std arrow fault format format/carbon/internal/layout
  format/carbon/internal/schema format/carbon/internal/status format/carbon/internal/table
stoa/format/carbon/internal/mixed: std arrow fault format region store vec format/internal/lake format/parquet
  internal/civil format/carbon/internal/schema format/carbon/internal/status format/carbon/internal/table
  format/carbon/internal/since format/carbon/internal/change format/carbon/internal/layout
  format/carbon/internal/datafile
stoa/format/carbon        : std format/parquet
  internal/rows internal/check internal/describe arrow fault format pred region store
  vec wire
  internal/civil
  internal/arrowschema
  internal/nest internal/thrift internal/enc/... internal/codec internal/sum github.com/RoaringBitmap/...
  github.com/apache/arrow-go/v18/arrow/ipc format/carbon/...
stoa/format/cfile/internal/block: std internal/check arrow fault format pred region store vec wire
  internal/arrowschema
  internal/enc/... internal/codec internal/sum internal/bloom internal/pb internal/present
  github.com/apache/arrow-go/v18/arrow/ipc
stoa/format/cfile/internal/columnfile: std arrow fault format format/option pred region store vec wire
  internal/arrowschema
  internal/enc/... internal/codec internal/sum internal/bloom internal/pb internal/present
  github.com/apache/arrow-go/v18/arrow/ipc format/cfile/internal/block internal/budget
stoa/format/cfile/internal/write: std internal/coerce arrow fault format format/option pred region store vec wire
  internal/arrowschema
  internal/enc/... internal/codec internal/sum internal/bloom internal/pb internal/nest
  github.com/apache/arrow-go/v18/arrow/ipc format/cfile/internal/block format/cfile/internal/columnfile
stoa/format/cfile         : std internal/rows internal/check internal/describe internal/parts arrow fault format pred
  region store vec wire
  internal/arrowschema
  internal/check internal/enc/...
  internal/codec internal/sum internal/bloom internal/pb internal/present internal/nest
  github.com/zeebo/xxh3
  github.com/apache/arrow-go/v18/arrow/ipc format/cfile/...
stoa/format/ipc/flat      : std fault
stoa/format/ipc/sample    : anything
stoa/format/ipc           : std internal/check internal/describe arrow fault format format/option internal/budget
  internal/codec
  pred region
  store vec wire
  internal/arrowschema internal/settle
  format/ipc/flat github.com/apache/arrow-go/v18/arrow/ipc github.com/google/flatbuffers/...
stoa/format/text          : std internal/check arrow fault format format/option pred region store vec internal/civil
  internal/cells
  internal/enc/half internal/typewords github.com/klauspost/compress/...
stoa/format/parquet/internal/meta: std arrow fault format format/option vec wire internal/codec internal/thrift
  github.com/andybalholm/brotli github.com/apache/arrow-go/v18/arrow/ipc
stoa/format/parquet/internal/page: std arrow fault format pred vec internal/dremel internal/enc/...
  internal/nest internal/thrift format/parquet/internal/meta
stoa/format/parquet/internal/order: std arrow pred vec internal/enc/half internal/nest
stoa/format/parquet/internal/write: std arrow fault format format/option store vec internal/codec internal/dremel
  internal/nest
  internal/thrift github.com/andybalholm/brotli github.com/klauspost/compress/... github.com/cespare/xxhash/...
  format/parquet/internal/meta format/parquet/internal/order
stoa/format/parquet/internal/file: std arrow fault format format/option region store vec wire
  internal/arrowschema internal/claims
  internal/thrift
  format/parquet/internal/meta format/parquet/internal/page format/parquet/internal/order
stoa/format/parquet/internal/read: std arrow fault format pred vec internal/enc/half internal/nest internal/present
  github.com/cespare/xxhash/... format/parquet/internal/meta format/parquet/internal/page
  format/parquet/internal/order
  format/parquet/internal/file
stoa/format/parquet/internal/describe: std fault format region internal/describe internal/thrift
  format/parquet/internal/meta
  format/parquet/internal/file
stoa/format/parquet/internal/verify: std arrow fault format pred region vec internal/check
  github.com/cespare/xxhash/...
  format/parquet/internal/meta format/parquet/internal/page format/parquet/internal/order format/parquet/internal/file
  format/parquet/internal/read format/parquet/internal/describe
stoa/format/parquet/internal/recovery: std fault format region wire internal/check internal/dremel internal/thrift
  format/parquet/internal/meta format/parquet/internal/file format/parquet/internal/read
  format/parquet/internal/verify
stoa/format/parquet/internal/rewrite: std arrow fault format pred region store vec format/parquet/internal/meta
  format/parquet/internal/file format/parquet/internal/read format/parquet/internal/verify
  format/parquet/internal/write internal/nest
stoa/format/parquet       : std internal/rows arrow format format/option region store format/parquet/...
stoa/internal/avro        : std fault store github.com/klauspost/compress/...
stoa/internal/roaring     : std
stoa/format/internal/lake : std arrow fault format pred region store vec internal/budget internal/coerce internal/hive
  internal/enc/half internal/scan format/option format/parquet
stoa/format/internal/lake/laketest: anything
stoa/format/iceberg/internal/meta: std arrow fault store internal/avro format/internal/lake
stoa/format/iceberg       : std arrow fault format format/option pred region store vec internal/budget
  internal/check internal/coerce internal/roaring format/parquet format/internal/lake format/iceberg/...
stoa/format/delta/internal/log: std arrow format/internal/lake
stoa/format/delta         : std arrow fault format format/option pred region store vec internal/budget internal/check
  internal/coerce internal/roaring internal/scan format/parquet format/internal/lake format/delta/...
stoa/internal/hive        : std arrow fault internal/arrowschema
stoa/format/hive          : std arrow fault format format/option pred region store internal/hive internal/parts
  internal/typewords format/internal/lake
stoa/format/icebergdelta  : std arrow format store format/delta format/iceberg format/internal/lake format/parquet
stoa/format/kudu/kudufs   : std arrow fault format format/option region store vec wire internal/nest internal/pb
  format/cfile format/kudu/...
stoa/format/kudubackup    : std arrow fault format format/option region store vec internal/budget internal/parts
  internal/nest internal/scan format/cfile format/kudu format/parquet
stoa                      : std internal/coerce arrow github.com/apache/arrow-go/v18/arrow/array/arreflect fault
  format pred region
  store store/remote vec internal/address internal/workcopy internal/alter internal/altered internal/fit
  internal/arrowschema
  internal/extremes
  internal/check internal/health internal/scan internal/share internal/content internal/fieldnames internal/glob
  internal/parked internal/parts internal/positions internal/rows
  internal/settle internal/diff internal/watched internal/foreign
  -format/formattest -format/kudubackup -format/iceberg -format/delta -format/icebergdelta -format/hive format/*
stoa/format/*             : std arrow fault format format/option pred region store vec wire internal/budget
  internal/check internal/civil internal/codec internal/coerce internal/describe internal/dremel internal/enc/...
  internal/nest internal/pb internal/rows internal/sum internal/thrift
stoa/advise               : std fault format store stoa vec
stoa/stage                : std arrow fault format store stoa internal/parts
stoa/serve                : std arrow fault format internal/cells internal/check internal/extremes internal/fit
  github.com/andybalholm/brotli
  pred region store stoa vec
stoa/cmd/stoa/internal/config: std format github.com/pelletier/go-toml/v2
stoa/cmd/stoa/internal/catalogue: std format stoa format/kudu/kudufs format/kudubackup format/iceberg format/delta
  format/icebergdelta format/hive
  store/s3 store/web store/hdfs
stoa/cmd/stoa/internal/register: std format/iceberg
stoa/cmd/stoa/internal/catchup: std arrow fault format format/icebergdelta region stoa store store/remote
  internal/health
  internal/content internal/fit internal/settle format/iceberg format/delta
stoa/cmd/stoa/internal/change: noformat format/text
stoa/cmd/stoa/internal/convert: noformat format/option
stoa/cmd/...              : noformat
stoa/internal/attack      : std
stoa/internal/soak        : std
stoa/internal/weight      : std
stoa/interop/...          : anything
stoa/bench/...            : anything
`

// arrowPackages are the packages that "arrow" means: the light ones.
var arrowPackages = []string{
	"github.com/apache/arrow-go/v18/arrow",
	"github.com/apache/arrow-go/v18/arrow/array",
	"github.com/apache/arrow-go/v18/arrow/bitutil",
	"github.com/apache/arrow-go/v18/arrow/decimal",
	"github.com/apache/arrow-go/v18/arrow/decimal128",
	"github.com/apache/arrow-go/v18/arrow/decimal256",
	"github.com/apache/arrow-go/v18/arrow/endian",
	"github.com/apache/arrow-go/v18/arrow/float16",
	"github.com/apache/arrow-go/v18/arrow/memory",
	"github.com/apache/arrow-go/v18/arrow/memory/mallocator",
	"github.com/apache/arrow-go/v18/arrow/extensions",
}

func TestImportsPointOneWay(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,Standard", "stoa/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	seen := 0
	for {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		seen++
		allowed, ok := rule(p.ImportPath)
		if !ok {
			t.Errorf("%s has no line in the policy", p.ImportPath)
			continue
		}
		for _, imp := range p.Imports {
			if !may(allowed, imp) {
				t.Errorf("%s imports %s, which the policy does not allow", p.ImportPath, imp)
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d packages were looked at", seen)
	}
}

func rule(pkg string) ([]string, bool) {
	for _, line := range strings.Split(strings.ReplaceAll(strings.TrimSpace(policy), "\n  ", " "), "\n") {
		name, list, _ := strings.Cut(line, ":")
		if matches(strings.TrimSpace(name), pkg) {
			return strings.Fields(list), true
		}
	}
	return nil, false
}

func matches(pattern, pkg string) bool {
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == base || strings.HasPrefix(pkg, base+"/")
	}
	ok, _ := path.Match(pattern, pkg)
	return ok
}

func may(allowed []string, imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	std := !strings.Contains(first, ".") && first != "stoa" || imp == "stoa/internal/sorted"
	for _, a := range allowed {
		if never, ok := strings.CutPrefix(a, "-"); ok && matches("stoa/"+never, imp) {
			return false
		}
		switch {
		case a == "anything", a == "std" && std:
			return true
		case a == "noformat" && !strings.HasPrefix(imp, "stoa/format/"):
			return true
		case a == "arrow":
			for _, p := range arrowPackages {
				if p == imp {
					return true
				}
			}
		case matches(a, imp), matches("stoa/"+a, imp):
			return true
		}
	}
	return false
}

// TestPolicyCanFail checks that violations are found.
func TestPolicyCanFail(t *testing.T) {
	for _, pkg := range []string{"stoa/cmd/stoa", "stoa/cmd/stoa/internal/verb"} {
		allowed, _ := rule(pkg)
		for imp, want := range map[string]bool{"stoa/format": true, "stoa": true, "github.com/spf13/cobra": true,
			"stoa/format/carbon": false, "stoa/format/text": false} {
			if may(allowed, imp) != want {
				t.Errorf("%s may import %s: %t, want %t", pkg, imp, !want, want)
			}
		}
	}
	allowed, _ := rule("stoa/internal/enc/rle")
	for imp, want := range map[string]bool{
		"fmt": true, "stoa/fault": true, "stoa/vec": false, "stoa/format/cfile": false,
		"github.com/apache/arrow-go/v18/arrow": false, "github.com/pierrec/lz4/v4": true,
	} {
		if may(allowed, imp) != want {
			t.Errorf("enc may import %s: %t, want %t", imp, !want, want)
		}
	}
	if a, _ := rule("stoa"); may(a, "github.com/apache/arrow-go/v18/arrow/compute") {
		t.Error("the root may import arrow/compute")
	}
	if _, ok := rule("stoa/util"); ok {
		t.Error("stoa/util has a line")
	}
}

// TestNewFormatNeedsNoLine: a folder with a format of the usual needs, and a line in formats.go, comply with the
// policy.
func TestNewFormatNeedsNoLine(t *testing.T) {
	root, _ := rule("stoa")
	if !may(root, "stoa/format/orc") || may(root, "stoa/format/formattest") || may(root, "stoa/format/kudubackup") ||
		may(root, "stoa/format/kudu/kudufs") {
		t.Errorf("the root may import %v, want format/* without what is no format, and none below", root)
	}
	orc, ok := rule("stoa/format/orc")
	if !ok {
		t.Fatal("a new format has no line in the policy")
	}
	for imp, want := range map[string]bool{"stoa/format": true, "stoa/wire": true, "stoa/internal/check": true,
		"stoa/internal/enc/rle": true, "stoa/format/cfile": false, "stoa": false, "github.com/spf13/cobra": false,
		"github.com/apache/arrow-go/v18/arrow/compute": false} {
		if may(orc, imp) != want {
			t.Errorf("a new format may import %s: %t, want %t", imp, !want, want)
		}
	}
	if _, ok := rule("stoa/format/orc/internal/page"); ok {
		t.Error("a layer of a new format has a line, want none: layers have lines of their own")
	}
}

// TestOneListOfFormats: in the root only formats.go imports formats.
func TestOneListOfFormats(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}} {{join .GoFiles \" \"}}", "stoa").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	words := strings.Fields(string(out))
	n := 0
	for _, name := range words[1:] {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(words[0], name), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range f.Imports {
			if !strings.HasPrefix(imp.Path.Value, `"stoa/format/`) {
				continue
			}
			if n++; name != "formats.go" {
				t.Errorf("%s imports %s", name, imp.Path.Value)
			}
		}
	}
	if n < 8 {
		t.Errorf("only %d imports of formats were found", n)
	}
}

// TestPolicyHasNoDeadLines: every line of the policy is about an existing package.
func TestPolicyHasNoDeadLines(t *testing.T) {
	out, err := exec.Command("go", "list", "stoa/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	pkgs := strings.Fields(string(out))
	for line := range strings.Lines(strings.TrimSpace(policy)) {
		if name, _, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, " ") &&
			!slices.ContainsFunc(pkgs, func(p string) bool { return matches(strings.TrimSpace(name), p) }) {
			t.Errorf("%s has a line in the policy, and does not exist", strings.TrimSpace(name))
		}
	}
}
