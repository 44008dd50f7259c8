// Command next makes the fixtures of a release: small files of every writer, as this build writes them, with the rows
// that they were made from.
//
//	go run ./corpus/releases/next v1.0.0
//
// It writes corpus/releases/VERSION, once: a set is never replaced. Every later build reads every set (TestReleases in
// cmd/stoa). The expected rows are computed here, by formulas, and not read back from what was written.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"stoa/cmd/stoa/verbs"
)

// stamp is the time of change of every file of a set: splits and journals remember it, and git does not.
var stamp = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const root = "@ROOT@" // stands for the absolute path of the set in files that hold it

// set is MANIFEST.json.
type set struct {
	Version string            `json:"version"`
	Stoa    json.RawMessage   `json:"stoa"` // stoa version -f json
	Stamp   time.Time         `json:"stamp"`
	Cases   []fixture         `json:"cases"`
	Files   map[string]string `json:"files"` // SHA-256 of every file
}

// fixture is a table, and the rows that it has.
type fixture struct {
	Path      string   `json:"path"`
	Made      string   `json:"made"` // the command line
	Rows      string   `json:"rows"`
	Columns   []string `json:"columns,omitempty"` // of the rows; all, if there are none
	Args      []string `json:"args,omitempty"`    // what else a reader needs
	Unordered bool     `json:"unordered,omitempty"`
}

func main() {
	if os.Getenv("STOA_AS_COMMAND") != "" {
		status, _ := verbs.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
		os.Exit(status)
	}
	log.SetFlags(0)
	out := flag.String("o", "corpus/releases", "directory of the sets")
	flag.Parse()
	if flag.NArg() != 1 || !strings.HasPrefix(flag.Arg(0), "v") {
		log.Fatal("usage: next [-o DIR] vMAJOR.MINOR.PATCH")
	}
	to, err := filepath.Abs(filepath.Join(*out, flag.Arg(0)))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := os.Lstat(to); err == nil {
		log.Fatalf("%s exists: the fixtures of a release are never replaced", to)
	}
	work := to + ".unfinished"
	if err := os.Mkdir(work, 0o777); err != nil {
		log.Fatal(err)
	}
	if err := os.Chdir(work); err != nil {
		log.Fatal(err)
	}
	s := &set{Version: flag.Arg(0), Stamp: stamp}
	s.make()
	s.seal()
	if err := os.Rename(work, to); err != nil {
		log.Fatal(err)
	}
}

// stoa runs a command line and returns its standard output. Any other status than 0 ends the program.
func stoa(line string) string {
	var out, notes bytes.Buffer
	status, err := verbs.Run(context.Background(), words(line), strings.NewReader(""), &out, &notes)
	if status != 0 {
		log.Fatalf("stoa %s: status %d, %v\n%s", line, status, err, notes.String())
	}
	return out.String()
}

// words divides a line at spaces; those within single quotes stay.
func words(line string) (all []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}

func put(name string, text []byte) {
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(name, text, 0o666); err != nil {
		log.Fatal(err)
	}
}

// add makes a table and notes it. IN in the line is the file of the rows with their types, OUT is path.
func (s *set) add(path, rows, line string, f fixture) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		log.Fatal(err)
	}
	line = strings.ReplaceAll(line, "OUT", path)
	stoa(strings.ReplaceAll(line, "IN", "rows/"+rows+".jsonl --schema rows/"+rows+".schema"))
	f.Made = line
	if f.Path == "" {
		f.Path = path
	}
	f.Rows = "rows/" + rows + ".jsonl"
	s.Cases = append(s.Cases, f)
}

// row is a line of JSON lines: names and values in their order.
type row [][2]any

func (r row) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, f := range r {
		v, err := json.Marshal(f[1])
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%c%q:%s", "{,"[min(i, 1)], f[0], v)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func write(name, schema string, n int, formula func(int) row) {
	var b bytes.Buffer
	for i := range n {
		r := formula(i)
		if r == nil {
			continue
		}
		line, err := json.Marshal(r)
		if err != nil {
			log.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	put("rows/"+name+".jsonl", b.Bytes())
	put("rows/"+name+".schema", []byte(schema+"\n"))
}

func unless(null bool, v any) any {
	if null {
		return nil
	}
	return v
}

const flatTypes = "id: int64, n: int32, s: utf8, x: float64, ok: bool, day: date, at: timestamp[us, UTC], " +
	"price: decimal(20,4), bytes: binary"

// flat has types that every format has, and no decimal that ends with 0.
func flat(i int) row {
	day := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, i*5-300)
	at := time.Date(2024, 2, 29, 23, 59, 59, 0, time.UTC).Add(time.Duration(i*i) * time.Second)
	return row{{"id", i*3 - 100}, {"n", unless(i%13 == 4, i*7919%2001-1000)},
		{"s", unless(i%7 == 3, fmt.Sprintf("näme %d", i%17))}, {"x", unless(i%11 == 5, float64(i)*0.125-3)},
		{"ok", unless(i%5 == 1, i%3 == 0)}, {"day", unless(i%19 == 2, day.Format(time.DateOnly))},
		{"at", unless(i%17 == 1, at.Format(time.RFC3339))},
		{"price", unless(i%23 == 7, fmt.Sprintf("%d.%03d5", i*31-40, i%1000))},
		{"bytes", unless(i%9 == 8, base64.StdEncoding.EncodeToString([]byte{byte(i), 0, 255, byte(i / 3)}))}}
}

const nestedTypes = "id: int64, tags: list<utf8>, who: struct<name: utf8, age: int32>, " +
	"points: list<struct<x: int32, y: float64>>"

func nested(i int) row {
	tags, points := []any{}, []any{}
	for k := range i % 4 {
		tags = append(tags, unless(k == 2, fmt.Sprintf("t%d", i*k)))
		points = append(points, row{{"x", unless(i%3 == 1, k-i)}, {"y", float64(k) / 4}})
	}
	return row{{"id", i}, {"tags", unless(i%10 == 9, tags)},
		{"who", unless(i%6 == 5, row{{"name", unless(i%8 == 7, fmt.Sprint("n", i))}, {"age", i}})},
		{"points", unless(i%11 == 10, points)}}
}

func sorted(i int) row {
	return row{{"k", fmt.Sprintf("key-%05d", i*3)}, {"v", i / 10}}
}

// changed is flat after the update and the deletion of the CarbonData table.
func changed(i int) row {
	r := flat(i)
	if id := r[0][1].(int); id < -40 {
		return nil
	} else if id > 150 && id < 190 {
		r[2][1] = "changed"
	}
	return r
}

// beside is nested with the fields of its struct as columns side by side.
func beside(i int) row {
	return row{{"id", i}, {"who.name", unless(i%6 == 5 || i%8 == 7, fmt.Sprint("n", i))},
		{"who.age", unless(i%6 == 5, i)}}
}

// short is some columns of flat, and one that a table gets later.
func short(i int) row { return append(flat(i)[:4:4], [2]any{"more", nil}) }

func (s *set) make() {
	write("flat", flatTypes, 120, flat)
	write("nested", nestedTypes, 60, nested)
	write("sorted", "k: utf8, v: int32", 400, sorted)
	write("varint", "u: uint32", 150, func(i int) row { return row{{"u", i * i * i * 977}} })
	write("changed", flatTypes, 120, changed)
	write("twice", flatTypes, 240, func(i int) row { return flat(i % 120) })
	write("beside", "id: int64, who.name: utf8, who.age: int32", 60, beside)
	write("short", "id: int64, n: int32, s: utf8, x: float64, more: int32", 120, short)
	s.cfiles()
	s.containers()
	s.tables()
	s.options()
	s.managed()
	s.protocols()
}

// opts are the command lines of one format: a name for each list of options.
func (s *set) opts(dir, ext, rows string, of map[string]string, f fixture) {
	for _, name := range names(of) {
		s.add(dir+"/"+name+ext, rows, "convert IN -o OUT "+of[name], f)
	}
}

func names(of map[string]string) (all []string) {
	for n := range of {
		at := 0
		for at < len(all) && all[at] < n {
			at++
		}
		all = append(all[:at], append([]string{n}, all[at:]...)...)
	}
	return all
}

func (s *set) cfiles() {
	column := func(name string) fixture { return fixture{Columns: []string{name}} }
	for _, codec := range []string{"none", "lz4", "snappy", "zlib"} {
		for _, enc := range []string{"plain", "bitshuffle", "rle"} {
			s.opts("cfile", ".cfile", "flat", map[string]string{"int64-" + enc + "-" + codec: "-c id" +
				" --opt encoding=" + enc + " --opt compression=" + codec}, column("id"))
		}
		for _, enc := range []string{"plain", "prefix", "dict"} {
			s.opts("cfile", ".cfile", "flat", map[string]string{"string-" + enc + "-" + codec: "-c s" +
				" --opt encoding=" + enc + " --opt compression=" + codec}, column("s"))
		}
	}
	s.opts("cfile", ".cfile", "varint",
		map[string]string{"varint": "--opt version=1 --opt encoding=group-varint"}, column("u"))
	s.opts("cfile", ".cfile", "sorted", map[string]string{
		"value-index": "-c k --opt value-index=true --opt encoding=prefix --opt block-size=512 " +
			"--opt index-block-size=1KiB",
		"small":       "-c k --opt restart-interval=2 --opt block-size=512 --opt encoding=prefix",
		"only-values": "-c k --opt value-index=true --opt positional-index=false --opt encoding=plain"}, column("k"))
	s.opts("cfile", ".cfile", "flat", map[string]string{"version-1": "-c n --opt version=1",
		"no-checksums": "-c n --opt checksums=false", "plain-metadata": "-c x --opt plain-metadata=true"}, column("n"))
	s.Cases[len(s.Cases)-2].Columns = []string{"x"} // plain-metadata: the file has no name of its column
	s.Cases[len(s.Cases)-2].Args = []string{"--source-opt", "name=x"}
	s.opts("cfile-sets", "", "flat", map[string]string{"flat": "--to cfile",
		"zlib": "--to cfile --opt compression=zlib"},
		fixture{})
	s.opts("cfile-sets", "", "nested", map[string]string{"nested": "--to cfile -c id,who"},
		fixture{Columns: []string{"id", "who"}})
}

func (s *set) containers() {
	put("keys.txt", []byte("footer 30313233343536373839616263646566\n"))
	both := func(dir, ext string, of map[string]string, f fixture) {
		s.opts(dir, ext, "flat", of, f)
		for _, name := range names(of) {
			if strings.HasPrefix(name, "default") {
				s.opts(dir, ext, "nested", map[string]string{"nested-" + name: of[name]}, f)
			}
		}
	}
	both("parquet", ".parquet", map[string]string{"default": "", "none": "--opt compression=none",
		"zstd": "--opt compression=zstd", "gzip": "--opt compression=gzip", "lz4": "--opt compression=lz4",
		"brotli": "--opt compression=brotli", "pages-2": "--opt page-version=2 --opt version=2.6",
		"version-1.0": "--opt version=1.0", "plain": "--opt encoding=plain --opt dictionary=false",
		"encoded": "--opt dictionary=false", "groups": "--opt row-group-rows=50 --opt page-rows=20 --opt bloom=id,s",
		"sorted": "--opt sorting-columns=id", "bare": "--opt page-index=false --opt crc=false"}, fixture{})
	both("parquet", ".parquet", map[string]string{"encrypted": "--opt key-file=keys.txt",
		"encrypted-ctr": "--opt key-file=keys.txt --opt encryption=gcm-ctr --opt plain-footer=true"},
		fixture{Args: []string{"--key-file", "keys.txt"}})
	both("arrow", ".arrow", map[string]string{"default": "", "stream": "--opt stream=true",
		"lz4": "--opt compression=lz4", "zstd": "--opt compression=zstd"}, fixture{})
	both("redfile", ".red", map[string]string{"default": "", "generation-a": "--opt generation=A",
		"gzip": "--opt compression=gzip", "none": "--opt compression=none", "varint": "--opt encoding=group-varint",
		"groups": "--opt row-group-rows=50 --opt page-size=1KiB --opt sync=2", "binary": "--opt protocol=binary",
		"bare": "--opt crc=false --opt index=false"}, fixture{})
	both("redfile", "", map[string]string{"split-groups": "--to redfile --opt split=row-group --opt row-group-rows=50",
		"split-metadata": "--to redfile --opt split=metadata"}, fixture{})
	codecs := map[string]string{"default": "", "null": "--opt codec=null", "deflate": "--opt codec=deflate",
		"snappy": "--opt codec=snappy", "bzip2": "--opt codec=bzip2", "no-checksums": "--opt checksum=null",
		"blocks": "--opt block-size=512 --opt first-values=all"}
	both("trevni", ".trv", codecs, fixture{})
	avro := map[string]string{"default-avro-1": "--to trevni-avro --opt version=1"}
	for name, o := range codecs {
		avro[name+"-avro"] = "--to trevni-avro " + o
	}
	both("trevni", ".trv", avro, fixture{})
	typed := fixture{Args: []string{"--schema", "rows/SCHEMA"}}
	both("text", ".jsonl", map[string]string{"default": ""}, typed)
	both("text", ".jsonl.gz", map[string]string{"default-gzip": ""}, typed)
	for _, form := range []string{"csv", "tsv"} {
		s.opts("text", "."+form, "flat", map[string]string{"flat": "--opt header=true --opt null=NULL"}, fixture{
			Args: []string{"--schema", "rows/SCHEMA", "--source-opt", "header=true", "--source-opt", "null=NULL"}})
	}
}

func (s *set) tables() {
	s.opts("carbon", "", "flat", map[string]string{"default": "--to carbon",
		"zstd": "--to carbon --opt compression=zstd", "gzip": "--to carbon --opt compression=gzip",
		"pages":         "--to carbon --opt page-rows=32",
		"no-dictionary": "--to carbon --opt local-dictionary=false"}, fixture{})
	s.opts("carbon", ".carbondata", "flat", map[string]string{
		"version-2": "--opt version=2 -c id,n,s,x", "version-1": "--opt version=1 -c id,n,s,x"},
		fixture{Columns: []string{"id", "n", "s", "x"}})
	s.opts("carbon", "", "flat", map[string]string{
		"sorted": "--to carbon --opt sort-columns=s,id --opt inverted-index=s"}, fixture{Unordered: true})
	stoa("create store#sales.flat --schema parquet/default.parquet --sort-columns id")
	stoa("load store#sales.flat rows/flat.jsonl --schema rows/flat.schema")
	stoa("delete store#sales.flat --where 'id < -40'")
	stoa("update store#sales.flat --set s=changed --where 'id > 150 and id < 190'")
	s.Cases = append(s.Cases, fixture{Path: "store#sales.flat", Made: "create, load, delete, update",
		Rows: "rows/changed.jsonl", Unordered: true})
	at := " --opt location=file:///tables/OUT "
	lake := map[string]string{"iceberg": "--to iceberg" + at, "iceberg-3": "--to iceberg --opt format-version=3" + at,
		"delta": "--to delta", "both": "--to iceberg,delta" + at, "delta-partitioned": "--to delta --partition-by ok",
		"iceberg-partitioned": "--to iceberg --partition-by bucket(4,id)" + at,
		"hive":                "--to parquet --partition-by ok", "hive-redfile": "--to redfile --partition-by ok"}
	s.opts("tables", "", "flat", lake, fixture{Unordered: true})
	s.opts("tables", "", "nested", map[string]string{"iceberg-nested": "--to iceberg" + at,
		"delta-nested": "--to delta"},
		fixture{Unordered: true})
	s.opts("kudu", "", "flat", map[string]string{"backup": "--to kudu-backup --opt table=flat --opt key=id"},
		fixture{Path: "kudu/backup#flat", Args: []string{"--from", "kudu-backup"}, Unordered: true})
	s.add("kudu/fs", "flat", "convert IN -o OUT --to kudu-fs --opt table=flat --opt key=id --opt buckets=2",
		fixture{Path: "kudu/fs#flat", Unordered: true})
}

// options has those options of writers that no other case has.
func (s *set) options() {
	s.add("cfile-sets/one", "flat", "convert IN -o OUT --to cfile -c id --opt layout=dir --opt coerce=floor",
		fixture{Columns: []string{"id"}})
	s.add("cfile-sets/beside", "nested", "convert IN -o OUT --to cfile -c id,who --opt null-structs=flatten", fixture{})
	s.Cases[len(s.Cases)-1].Rows = "rows/beside.jsonl"
	s.opts("carbon", "", "flat", map[string]string{
		"limits": "--to carbon --opt long-strings=s --opt local-dictionary-threshold=5 --opt blocklet-size=1 " +
			"--opt block-size=1 --opt page-size=1 --opt timestamps=truncate --opt nulls=merge " +
			"--opt 'written-by=a test'",
		"runs": "--to carbon --opt sort-columns=s --opt memory=1KiB"}, fixture{Unordered: true})
	s.add("carbon/measures.carbondata", "flat", "convert IN -o OUT -c id,n,s,x --opt version=2 "+
		"--opt blocklet-rows=2000 --opt measures=1.0", fixture{Columns: []string{"id", "n", "s", "x"}})
	two := fixture{Columns: []string{"id", "x"}}
	bare := "convert IN -o OUT -c id,x --opt arrow-schema=false"
	s.add("redfile/typeless.red", "flat", bare+" --opt row-group-size=1KiB --opt memory=1KiB", two)
	s.add("trevni/typeless.trv", "flat", bare, two)
	s.add("trevni/typeless-avro.trv", "flat", bare+" --to trevni-avro", two)
	for _, to := range []string{"trevni", "trevni-avro"} {
		s.add("trevni/several-"+to, "flat", "convert IN -o OUT --to "+to+" --opt file-size=2KiB --opt block-size=512",
			fixture{})
	}
	for _, form := range []string{"csv", "tsv"} {
		s.add("text/delimited."+form, "flat", "convert IN -o OUT --opt 'delimiter=;' --opt gzip=true", fixture{
			Args: []string{"--schema", "rows/SCHEMA", "--source-opt", "delimiter=;"}})
	}
	put("column-keys.txt", []byte("footer 30313233343536373839616263646566\n"+
		"column s 61313233343536373839616263646566\naad-prefix 0102\n"))
	s.opts("parquet", ".parquet", "flat", map[string]string{"column-keys": "--opt key-file=column-keys.txt " +
		"--opt plain-columns=id --opt store-aad-prefix=false"},
		fixture{Args: []string{"--key-file", "column-keys.txt"}})
	s.opts("parquet", ".parquet", "flat", map[string]string{"metadata": "--opt compression=zstd --opt level=19 " +
		"--opt row-group-size=4KiB --opt memory=1KiB --opt page-size=1KiB --opt metadata=a=1,b=2 " +
		"--opt empty-structs=keep"}, fixture{})
	s.add("parquet/dropped.parquet", "flat", "convert parquet/metadata.parquet -o OUT --opt drop-metadata=b", fixture{})
	id, server := strings.Repeat("0123456789abcdef", 2), strings.Repeat("fedcba9876543210", 2)
	lake := " --opt location=file:///tables/OUT --opt partition-by=ok --opt sort-order=id --opt file-size=2KiB " +
		"--opt property=a=b --opt snapshot-time=1767225600000"
	s.opts("tables", "", "flat", map[string]string{"iceberg-sorted": "--to iceberg" + lake,
		"both-sorted": "--to iceberg,delta" + lake, "delta-files": "--to delta --opt partition-by=ok " +
			"--opt file-size=2KiB --opt property=a=b --opt snapshot-time=1767225600000"}, fixture{Unordered: true})
	s.add("kudu/parts", "flat", "convert IN -o OUT --to kudu-backup --opt table=flat --opt key=id --opt table-id="+id+
		" --opt replicas=1 --opt time=1767225600000 --opt part-rows=50",
		fixture{Path: "kudu/parts#flat", Args: []string{"--from", "kudu-backup"}, Unordered: true})
	s.add("kudu/log", "flat", "convert IN -o OUT --to kudu-fs --opt table=flat --opt key=id --opt table-id="+id+
		" --opt server="+server+" --opt peers="+server+"@127.0.0.1:7050 --opt time=1767225600000 "+
		"--opt block-manager=log --opt rowset-size=1KiB --opt first-block=100",
		fixture{Path: "kudu/log#flat", Unordered: true})
}

// managed has CarbonData tables of every form of load and change.
func (s *set) managed() {
	put("columns.txt", []byte("id BIGINT\nn INT\ns STRING\nx DOUBLE\n"))
	in := "rows/flat.jsonl --schema rows/flat.schema -c id,n,s,x"
	forms := map[string]string{
		"stream":   "create @ --schema columns.txt --property streaming=true; load @ IN --opt layout=rows",
		"parted":   "create @ --schema columns.txt --partition s; load @ IN ",
		"bucketed": "create @ --schema columns.txt --bucket 3:id; load @ IN ",
		"compacted": "create @ --schema columns.txt --sort-columns s; load @ IN ; merge @ IN --key id; " +
			"compact @ --major",
	}
	for _, name := range names(forms) {
		lines, table, has := forms[name], "store#forms."+name, fixture{Columns: []string{"id", "n", "s", "x"}}
		if name != "stream" { // a table with rows that stream in cannot get a column
			lines, has.Columns = lines+"; add-column @ more INT", nil
		}
		for line := range strings.SplitSeq(lines, "; ") {
			stoa(strings.NewReplacer("@", table, "IN ", in+" ").Replace(line))
		}
		has.Path, has.Made, has.Rows, has.Unordered = table, lines, "rows/short.jsonl", true
		s.Cases = append(s.Cases, has)
	}
}

func (s *set) protocols() {
	stampAll()
	// A directory that two jobs wrote to, and a third that is staged and not committed.
	for _, job := range []string{"one", "two"} {
		stoa("load staged rows/flat.jsonl --schema rows/flat.schema --to parquet --task 0 --attempt 0 --stage " + job)
		stoa("load staged --commit " + job + " --tasks 1")
	}
	s.Cases = append(s.Cases, fixture{Path: "staged", Made: "load --stage, load --commit, twice",
		Rows: "rows/twice.jsonl"})
	stoa("load waiting parquet/default.parquet --to parquet --stage three --task 0 --attempt 0")
	stampAll()
	here, err := os.Getwd()
	if err != nil {
		log.Fatal(err)
	}
	plan := stoa("plan parquet/groups.parquet --columns id,s --target-size 300B")
	put("splits.jsonl", []byte(strings.ReplaceAll(plan, here, root)))
	// A job over many tables that is done, and the journal of one that was not.
	stoa("convert --all cfile -o converted/done --to arrow")
	killed("converted/killed/.stoa-convert.journal", "convert --all cfile -o converted/killed --to arrow")
	killed("converted/pieces/*/.stoa-pieces.journal",
		"convert --all redfile -o converted/pieces --to csv --file-size 1KiB")
	stoa("rescue text/default.jsonl -o converted/rescued --to parquet")
	killed("converted/rescue-killed/.stoa-convert.journal", "rescue trevni -o converted/rescue-killed")
	// A warehouse, and one whose migration was killed.
	stoa("migrate store -o migrated/done")
	killed("migrated/killed/.stoa-convert.journal", "migrate trevni -o migrated/killed --to delta")
	stoa("seal parquet arrow -o some.seal --parity 20%")
}

// killed runs a command line in a process of its own, and kills it when a journal has some lines.
func killed(journal, line string) {
	self, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	for range 50 {
		cmd := exec.Command(self, words(line)...)
		cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1")
		if err := cmd.Start(); err != nil {
			log.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for waiting := true; waiting; {
			select {
			case <-ended:
				waiting = false
			case <-time.After(100 * time.Microsecond):
				if lines(journal) >= 4 {
					cmd.Process.Kill()
					<-ended
					if lines(journal) >= 4 {
						return
					}
					waiting = false
				}
			}
		}
		os.RemoveAll(words(line[strings.Index(line, " -o "):])[1])
	}
	log.Fatalf("%s: no process could be killed in time", line)
}

// lines is how many lines the longest file of a pattern has.
func lines(pattern string) (most int) {
	names, _ := filepath.Glob(pattern)
	for _, name := range names {
		b, _ := os.ReadFile(name)
		most = max(most, bytes.Count(b, []byte("\n")))
	}
	return most
}

// stampAll gives every file its time, without which splits and journals would name one that git forgets.
func stampAll() {
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chtimes(name, stamp, stamp)
	})
	if err != nil {
		log.Fatal(err)
	}
}

// seal writes MANIFEST.json.
func (s *set) seal() {
	for i := range s.Cases {
		for k, a := range s.Cases[i].Args {
			schema := strings.TrimSuffix(strings.TrimPrefix(s.Cases[i].Rows, "rows/"), ".jsonl") + ".schema"
			s.Cases[i].Args = append(append([]string{}, s.Cases[i].Args[:k]...), append([]string{
				strings.ReplaceAll(a, "SCHEMA", schema)}, s.Cases[i].Args[k+1:]...)...)
		}
	}
	s.Stoa = json.RawMessage(stoa("version -f json"))
	s.Files = map[string]string{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		s.Files[filepath.ToSlash(name)] = fmt.Sprintf("%x", sha256.Sum256(b))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		log.Fatal(err)
	}
	put("MANIFEST.json", append(b, '\n'))
}
