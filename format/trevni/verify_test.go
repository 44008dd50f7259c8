package trevni_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/trevni"
	"stoa/region"
	"stoa/store"
)

// findings returns the codes that verify reports, sorted and without duplicates, and all findings.
func findings(t testing.TB, data []byte) (codes []string, all []region.Finding) {
	t.Helper()
	return findingsAt(t, data, format.OpenOptions{}.Depth)
}

func findingsAt(t testing.TB, data []byte, depth format.Depth) (codes []string, all []region.Finding) {
	t.Helper()
	m := store.NewMemory(map[string][]byte{"f.trv": data})
	for f := range trevni.Format.Verify(t.Context(), format.Target{Tree: m, Name: "f.trv"},
		format.OpenOptions{Depth: depth}) {
		if !slices.Contains(codes, f.Code) {
			codes = append(codes, f.Code)
		}
		if f.At.Object != "f.trv" || f.At.Off < 0 || f.At.Len < 0 || f.At.End() > int64(len(data)) {
			t.Errorf("%s at %s of %d bytes", f.Code, f.At, len(data))
		}
		if !slices.ContainsFunc(trevni.Codes,
			func(c region.CodeDoc) bool { return c.Code == f.Code && c.Severity == f.Severity }) {
			t.Errorf("%s %s is in no table", f.Code, f.Severity)
		}
		all = append(all, f)
	}
	slices.Sort(codes)
	return codes, all
}

// TestVerifyCorpus: in files that Avro wrote, only Avro's own bugs are reported, and every byte belongs to a node.
func TestVerifyCorpus(t *testing.T) {
	dir := corpusDir()
	n := 0
	for _, e := range manifest(t, dir) {
		data, err := os.ReadFile(filepath.Join(dir, e.File))
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		version := strings.Split(e.File, "/")[0]
		old := version == "v1.7.4" || version == "v1.7.6" || version == "v1.9.1"
		if old && strings.Contains(e.File, "bzip2") {
			want = append(want, "trevni.block.padded")
		}
		if nullCRC(e) {
			want = append(want, "trevni.checksum.zero")
		}
		if strings.Contains(e.File, "values_boolean_two") {
			want = append(want, "trevni.firstvalue.boolean")
		}
		if got, all := findings(t, data); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v (%v)", e.File, got, want, all[:min(2, len(all))])
		}
		partition(t, e.File, data)
		n++
	}
	t.Logf("%d files", n)
}

// nullCRC reports whether a file's checksums are zero: those of the null codec.
func nullCRC(e entry) bool {
	for _, name := range []string{"all_null_crc32", "/arrays.trv", "long_value", "values_multi.trv"} {
		if strings.Contains(e.File, name) {
			return true
		}
	}
	return false
}

// partition checks that the nodes of a file claim each byte exactly once.
func partition(t testing.TB, name string, data []byte) {
	t.Helper()
	m := store.NewMemory(map[string][]byte{"f.trv": data})
	var nodes []region.Node
	for n, err := range trevni.Format.Describe(t.Context(), format.Target{Tree: m, Name: "f.trv"},
		format.DescribeOptions{Pages: true}) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		nodes = append(nodes, n)
	}
	formattest.Partition(t, nodes, "f.trv", int64(len(data)))
}

func TestDescribeDialects(t *testing.T) {
	for name, want := range map[string][]string{"dialects/wiki_dremel.trv": nil, "dialects/impala_none.trv": nil,
		"dialects/impala_deflate_zlib.trv": nil} {
		partition(t, name, corpusFile(t, name))
		if got, _ := findings(t, corpusFile(t, name)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestVerifyNegative: findings about files that contradict the format.
func TestVerifyNegative(t *testing.T) {
	for name, want := range map[string]string{
		"right_little_endian": "trevni.checksum.form", "crc_before_data": "trevni.checksum.form",
		"zero_": "trevni.checksum.zero", "zlib": "trevni.codec.zlib",
		"right_big_endian_null_codec": "", "sum_spelled_crc_minus_32": "trevni.checksum.name",
		"gap": "trevni.coverage.gap", "trail": "trevni.coverage.gap", "swapped": "", "negmeta": "",
		"wrong_raw_size": "trevni.block.rawsize", "two_blocks_empty": "trevni.block.empty",
		"dup": "trevni.column.duplicate", "badutf8": "trevni.block.damaged", "trunc_167": "trevni.block.cut",
		"trunc_40": "trevni.header.damaged", "magic_PAR1": "trevni.header.damaged", "magic_3": "trevni.unsupported",
		"type_uint": "trevni.unsupported", "codec_unknown": "trevni.unsupported",
		"hugeblocks": "trevni.column.damaged", "hugestored": "trevni.block.cut",
		"rowcount_more": "trevni.column.rows", "child_first": "trevni.header.damaged", "neglen": "trevni.block.damaged",
		"nokeys": "trevni.header.damaged", "magic_0": "", "magic_1": "",
	} {
		if got, all := findings(t, corpusFile(t, "negative/"+name+".trv")); strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s (%v)", name, got, want, all)
		}
	}
}

// TestVerifyStatesRowsAndColumn: findings state the rows, the column, and the number of lost cells.
func TestVerifyStatesRowsAndColumn(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64},
		{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	b := flatBatch(t, sc, 300)
	m := write(t, trevni.AvroFormat, sc, map[string]string{"block-size": "100", "first-values": "a"}, b)
	data := m.Bytes("t")
	if got, _ := findings(t, data); len(got) != 0 {
		t.Fatal(got)
	}
	span, row, rows := blockOf(t, data, 0, 2)
	bad := slices.Clone(data)
	bad[span.Off+3] ^= 4
	_, all := findings(t, bad)
	if len(all) != 1 || all[0].Code != "trevni.block.checksum" || all[0].Column != "a" ||
		all[0].Rows != [2]int64{row, row + rows} || all[0].Lost != rows || all[0].At != span {
		t.Errorf("%+v, want rows %d+%d at %s", all, row, rows, span)
	}
	cut := data[:len(data)-1]
	_, all = findings(t, cut)
	if len(all) != 1 || all[0].Code != "trevni.block.cut" || all[0].Column != "b/string" || all[0].Rows[1] != 300 ||
		all[0].Lost != 300-all[0].Rows[0] {
		t.Errorf("%+v", all)
	}
}

// blockOf finds block k of column i in the output of describe: its position and rows.
func blockOf(t testing.TB, data []byte, i, k int) (at fault.Span, row, rows int64) {
	t.Helper()
	m := store.NewMemory(map[string][]byte{"f.trv": data})
	column := false
	for n, err := range trevni.Format.Describe(t.Context(), format.Target{Tree: m, Name: "f.trv"},
		format.DescribeOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n.Depth == 1 {
			column = n.Name == fmt.Sprintf("column[%d]", i)
		}
		if column && n.Name == fmt.Sprintf("block[%d]", k) {
			value := strings.NewReplacer("entry", "row", "entries", "rows").Replace(n.Value)
			if _, err := fmt.Sscanf(value, "from row %d, %d rows", &row, &rows); err != nil {
				t.Fatal(err)
			}
			return n.At, row, rows
		}
	}
	t.Fatalf("no block %d of column %d", k, i)
	return at, 0, 0
}

// TestVerifyNames: a column whose name differs from that in the schema that our writer stores is reported, by verify
// and by the reader, wherever the damage is.
func TestVerifyNames(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "first", Type: arrow.PrimitiveTypes.Int32},
		{Name: "second", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true}}, nil)
	whole := unsealed(write(t, trevni.Format, sc, nil, flatBatch(t, sc, 5)).Bytes("t"))
	if codes, _ := findings(t, whole); len(codes) > 0 {
		t.Errorf("the whole file: %v", codes)
	}
	places := 0
	for at := range whole {
		if !bytes.HasPrefix(whole[at:], []byte("irst")) && !bytes.HasPrefix(whole[at:], []byte("cond")) {
			continue
		}
		places++
		for _, bit := range []byte{1, 0x80} { // a different letter, and invalid UTF-8
			b := slices.Clone(whole)
			b[at] ^= bit
			if codes, _ := findings(t, b); !slices.Equal(codes, []string{"trevni.schema.mismatch"}) {
				t.Errorf("byte %d bit %#x: %v", at, bit, codes)
			}
			r, err := trevni.Format.Open(t.Context(),
				format.Target{Tree: store.NewMemory(map[string][]byte{"f.trv": b}), Name: "f.trv"},
				format.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if reported := r.(format.Finder).Findings(); len(reported) != 1 ||
				reported[0].Code != "trevni.schema.mismatch" {
				t.Errorf("byte %d bit %#x: the reader reports %+v", at, bit, reported)
			}
			r.Close()
		}
	}
	if places != 4 { // each name in the schema, and at its column
		t.Errorf("%d places of names", places)
	}
}
