//go:build ignore

// Command choose copies a subset of the whole corpus of CFiles to kudu/1.18.1:
//
//	go run corpus/choose.go WHOLE/kudu DUMPS corpus/kudu/1.18.1
//
// DUMPS holds NAME.txt, what `kudu fs dump cfile` prints of blocks/file_nock/NAME, for all delta files without
// checksums: the whole corpus has dumps of the run with checksums only.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
)

type entry struct {
	File      string            `json:"file"`
	Source    string            `json:"source"`
	Dump      string            `json:"dump,omitempty"`
	Sha256    string            `json:"sha256"`
	Size      int64             `json:"size"`
	Kind      string            `json:"kind"`
	Table     string            `json:"table"`
	Partition string            `json:"partition"`
	Rowset    int               `json:"rowset"`
	BlockID   int64             `json:"block_id"`
	Column    string            `json:"column,omitempty"`
	ColumnID  string            `json:"column_id,omitempty"`
	Schema    json.RawMessage   `json:"schema,omitempty"`
	CFile     map[string]string `json:"cfile"`
	Checksums bool              `json:"checksums"`
	Btree     json.RawMessage   `json:"btree"`
	DictModes map[string]int    `json:"dict_modes"`
	Run       string            `json:"run"`
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func zip(b []byte) []byte {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	z.Write(b)
	z.Close()
	return out.Bytes()
}

func main() {
	whole, dumps, out := os.Args[1], os.Args[2], os.Args[3]
	var all, chosen []entry
	b, err := os.ReadFile(filepath.Join(whole, "MANIFEST.json"))
	check(err)
	check(json.Unmarshal(b, &all))
	sort.Slice(all, func(i, j int) bool { return all[i].BlockID < all[j].BlockID })
	check(os.RemoveAll(out))
	c := copier{whole: whole, dumps: dumps, out: out, numbers: map[string]int{}, missing: map[string]string{}}
	for _, e := range all {
		if e, ok := c.block(e); ok {
			chosen = append(chosen, e)
		}
	}
	c.manifest(chosen)
	b, err = json.MarshalIndent(c.missing, "", " ")
	check(err)
	c.write("DUMPS.json", append(b, '\n'))
	c.synthetic()
	c.expected()
	fmt.Println(len(chosen), "blocks,", c.total, "bytes")
}

// copier copies from the whole corpus to out.
type copier struct {
	whole, dumps, out string
	numbers           map[string]int    // delta files so far of a rowset
	missing           map[string]string // dumps that the whole corpus lacks, by the block
	total             int64             // bytes of blocks
}

func (c *copier) write(name string, b []byte) {
	name = filepath.Join(c.out, name)
	check(os.MkdirAll(filepath.Dir(name), 0o755))
	check(os.WriteFile(name, b, 0o644))
}

// block copies a block, or only its dump, or nothing; ok: the block.
func (c *copier) block(e entry) (_ entry, ok bool) {
	e.Source = e.File
	name, text, dump := c.name(e), c.dump(e), ""
	unchecked := e.Run == "file_nock"
	take := choose(e)
	if text != nil && (take || unchecked) {
		dump = strings.TrimSuffix(name, ".cfile") + ".dump.txt.gz"
		c.write(dump, zip(text))
		if unchecked {
			c.missing[e.Source] = dump
		}
	}
	if !take {
		return e, false
	}
	e.File, e.Dump = name, dump
	if string(e.Schema) == "null" {
		e.Schema = nil
	}
	b, err := os.ReadFile(filepath.Join(c.whole, e.Source))
	check(err)
	c.write(name, b)
	c.total += int64(len(b))
	return e, true
}

var hashAndDay = regexp.MustCompile(`HASH \(id\) PARTITION (\d), RANGE \(day\) PARTITION (\d+) <=`)

// name returns a block's name in the subset: by its table, partition and column.
func (c *copier) name(e entry) string {
	what := e.Column
	switch {
	case e.Kind == "column" && what == "":
		what = "dropped-column"
	case e.Kind == "undo" || e.Kind == "redo":
		key := fmt.Sprint(e.Run, e.Table, e.Partition, e.Rowset, e.Kind)
		c.numbers[key]++
		what = fmt.Sprint(e.Kind, "-", c.numbers[key])
	case e.Kind != "column":
		what = e.Kind
	}
	if m := hashAndDay.FindStringSubmatch(e.Partition); m != nil {
		what = "hash" + m[1] + "-day" + m[2] + "." + what
	}
	if strings.HasPrefix(e.Table, "d_") {
		what = fmt.Sprintf("rs%d.%s", e.Rowset, what)
	}
	return e.Table + "/" + what + "." + strings.TrimPrefix(e.Run, "file_") + ".cfile"
}

// dump returns what Kudu printed of a delta file; nil for others.
func (c *copier) dump(e entry) []byte {
	if e.Kind != "undo" && e.Kind != "redo" {
		return nil
	}
	if e.Dump == "" {
		text, err := os.ReadFile(filepath.Join(c.dumps, filepath.Base(e.File)+".txt"))
		check(err)
		return text
	}
	f, err := os.Open(filepath.Join(c.whole, e.Dump))
	check(err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	check(err)
	text, err := io.ReadAll(z)
	check(err)
	return text
}

// manifest writes the manifest, one entry per line.
func (c *copier) manifest(chosen []entry) {
	sort.Slice(chosen, func(i, j int) bool { return chosen[i].File < chosen[j].File })
	var man bytes.Buffer
	man.WriteString("[\n")
	for i, e := range chosen {
		b, err := json.Marshal(e)
		check(err)
		man.Write(b)
		if i < len(chosen)-1 {
			man.WriteByte(',')
		}
		man.WriteByte('\n')
	}
	man.WriteString("]\n")
	c.write("MANIFEST.json", man.Bytes())
}

// synthetic copies the files that no server wrote.
func (c *copier) synthetic() {
	files, err := filepath.Glob(filepath.Join(c.whole, "synthetic/*"))
	check(err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		check(err)
		name := "synthetic/" + filepath.Base(f)
		if strings.HasSuffix(f, ".kudu_dump.txt") {
			c.write(name+".gz", zip(b))
		} else {
			c.write(name, b)
		}
	}
}

// expected copies the rows that the generator recorded and the Java client read back, for the tests of
// internal/kudugen.
func (c *copier) expected() {
	files, err := filepath.Glob(filepath.Join(c.whole, "expected/*.jsonl.gz"))
	check(err)
	for _, f := range files {
		table, phase, _ := strings.Cut(filepath.Base(f), ".")
		if strings.HasPrefix(table, "key_") || table == "part" || table == "autoinc" || table == "d_alter" ||
			table == "d_major" && strings.HasPrefix(phase, "p4") {
			b, err := os.ReadFile(f)
			check(err)
			c.write("expected/"+filepath.Base(f), b)
		}
	}
}

// choose: with checksums everything once. Without: every type and encoding with two of the eight kinds of compression
// and nullability, and one of each special thing.
func choose(e entry) bool {
	var id int
	fmt.Sscan(e.ColumnID, &id)
	same := e.Table == "d_minor" || e.Table == "d_wal" // their base data are those of d_raw
	if e.Run == "file_ck" {
		switch {
		case same:
			return e.Table == "d_minor" && e.Kind == "redo"
		case e.Table == "d_major" && e.Rowset == 1, e.Table == "d_alter" && e.Rowset == 0 && e.Kind == "column" &&
			e.Column != "":
			return e.Kind != "column"
		case strings.HasPrefix(e.Table, "key_") && e.Table != "key_all":
			return e.Kind == "column" && e.Column == "k" || e.Table == "key_int8"
		case e.Table == "part":
			return strings.Contains(e.Partition, "PARTITION 100 <=")
		}
		return true
	}
	switch e.Table {
	case "matrix":
		j := id - 1
		return e.Kind != "column" || id > 0 && (j+j/8)%4 == 0
	case "ck":
		return e.Kind == "adhoc-index" || e.Column == "s" || e.Column == "b"
	case "btree":
		return e.Column == "k" || e.Kind == "bloom"
	case "d_raw":
		return e.Kind != "column"
	case "d_major":
		return e.Kind == "undo" && e.Rowset == 0
	case "key_binary", "key_dec38", "key_int8", "key_string":
		return e.Column != "v"
	case "autoinc", "d_alter":
		return true
	}
	return false
}
