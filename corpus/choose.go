//go:build ignore

// Choose copies a subset of the whole corpus of CFiles to kudu/1.18.1:
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
	write := func(name string, b []byte) {
		name = filepath.Join(out, name)
		check(os.MkdirAll(filepath.Dir(name), 0o755))
		check(os.WriteFile(name, b, 0o644))
	}
	numbers := map[string]int{}
	missing := map[string]string{} // dumps that the whole corpus lacks
	total := int64(0)
	for _, e := range all {
		e.Source = e.File
		ck := strings.TrimPrefix(e.Run, "file_")
		what := e.Column
		switch {
		case e.Kind == "column" && what == "":
			what = "dropped-column"
		case e.Kind == "undo" || e.Kind == "redo":
			key := fmt.Sprint(e.Run, e.Table, e.Partition, e.Rowset, e.Kind)
			numbers[key]++
			what = fmt.Sprint(e.Kind, "-", numbers[key])
		case e.Kind != "column":
			what = e.Kind
		}
		if m := regexp.MustCompile(`HASH \(id\) PARTITION (\d), RANGE \(day\) PARTITION (\d+) ` +
			`<=`).FindStringSubmatch(e.Partition); m != nil {
			what = "hash" + m[1] + "-day" + m[2] + "." + what
		}
		if strings.HasPrefix(e.Table, "d_") {
			what = fmt.Sprintf("rs%d.%s", e.Rowset, what)
		}
		name := e.Table + "/" + what + "." + ck + ".cfile"
		var text []byte
		if e.Kind == "undo" || e.Kind == "redo" {
			if e.Dump != "" {
				f, err := os.Open(filepath.Join(whole, e.Dump))
				check(err)
				z, err := gzip.NewReader(f)
				check(err)
				text, err = io.ReadAll(z)
				check(err)
			} else {
				text, err = os.ReadFile(filepath.Join(dumps, filepath.Base(e.File)+".txt"))
				check(err)
			}
		}
		dump := ""
		if take := choose(e); take || text != nil && ck == "nock" {
			if text != nil {
				dump = strings.TrimSuffix(name, ".cfile") + ".dump.txt.gz"
				write(dump, zip(text))
				if ck == "nock" {
					missing[e.Source] = dump
				}
			}
			if !take {
				continue
			}
		} else {
			continue
		}
		e.File, e.Dump = name, dump
		if string(e.Schema) == "null" {
			e.Schema = nil
		}
		b, err := os.ReadFile(filepath.Join(whole, e.Source))
		check(err)
		write(name, b)
		total += int64(len(b))
		chosen = append(chosen, e)
	}
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
	write("MANIFEST.json", man.Bytes())
	b, err = json.MarshalIndent(missing, "", " ")
	check(err)
	write("DUMPS.json", append(b, '\n'))

	files, err := filepath.Glob(filepath.Join(whole, "synthetic/*"))
	check(err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		check(err)
		name := "synthetic/" + filepath.Base(f)
		if strings.HasSuffix(f, ".kudu_dump.txt") {
			write(name+".gz", zip(b))
		} else {
			write(name, b)
		}
	}
	// Rows as the generator wrote them down and the Java client read them back, for the tests of internal/kudugen.
	files, err = filepath.Glob(filepath.Join(whole, "expected/*.jsonl.gz"))
	check(err)
	for _, f := range files {
		table, phase, _ := strings.Cut(filepath.Base(f), ".")
		if strings.HasPrefix(table, "key_") || table == "part" || table == "autoinc" || table == "d_alter" ||
			table == "d_major" && strings.HasPrefix(phase, "p4") {
			b, err := os.ReadFile(f)
			check(err)
			write("expected/"+filepath.Base(f), b)
		}
	}
	fmt.Println(len(chosen), "blocks,", total, "bytes")
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
