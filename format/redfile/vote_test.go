package redfile_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/layout"
	"stoa/internal/effort"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

// TestRowGroupsVote flips every bit of the metadata of chunks in files of generation A without checksums, where it
// alone has the types, the levels, and without the Arrow schema also the names of the columns. With three row groups, a
// bit in one costs at most the cells of its chunk: the others are read as they were, under the same names, whether the
// file is opened as usual or recovered. With two, it is not known which is right: the file may be refused, or the chunk
// of either be lost, or names be told as doubtful. No value is another. If cells are lost, verify reports damage, too.
func TestRowGroupsVote(t *testing.T) {
	for _, arrow := range []string{"true", "false"} {
		for _, groups := range []int{2, 3} {
			voteInFile(t, arrow, groups)
		}
	}
}

// TestRowGroupsVoteInline is TestRowGroupsVote for generation B, where the file's metadata has a copy of each chunk's.
func TestRowGroupsVoteInline(t *testing.T) {
	for _, groups := range []int{2, 3} {
		voteIn(t, "generation B", inline(t, sampleForVotes(t, "false", groups)), groups)
	}
}

// inline returns a file of generation A as one of generation B: the bytes of the metadata of each chunk are field 3 of
// its ColumnChunk, too.
func inline(t *testing.T, file []byte) []byte {
	t.Helper()
	nodes, err := describeAll(target(file))
	if err != nil {
		t.Fatal(err)
	}
	var chunks [][]byte
	var out []byte
	for _, n := range nodes {
		switch {
		case n.Name == "column_metadata":
			chunks = append(chunks, file[n.At.Off:n.At.End()])
		case n.Name == "file_metadata":
			m, _ := layout.ParseFileMeta(wire.NewCursor(file[n.At.Off:n.At.End()], n.At, "file_metadata"))
			w := thrift.NewWriter(m.Protocol)
			w.Struct(thrift.Item)
			w.I32(1, m.Version)
			w.I64(2, m.Rows)
			w.I32(3, m.NumCols)
			w.List(4, thrift.Struct, len(m.Groups))
			b, k := w.Encoded(), 0
			for _, g := range m.Groups {
				b = append(b, 0x19, byte(len(g.Columns)<<4|0x0c)) // a struct begins with its field 1, a list of structs
				for _, c := range g.Columns {
					b = append(binary.AppendVarint(append(b, 0x26), c.Offset), 0x1c) // fields 2, i64, and 3, a struct
					b = append(append(b, chunks[k]...), 0)
					k++
				}
				b = append(binary.AppendVarint(append(b, 0x16), g.Bytes), 0)
			}
			b = append(b, 0)
			if m, _ := layout.ParseFileMeta(wire.NewCursor(b, n.At, "")); m.Gen != layout.GenB || len(m.Groups) == 0 {
				t.Fatalf("generation %s", m.Gen)
			}
			out = append(append(slices.Clone(file[:n.At.Off]), b...), binary.LittleEndian.AppendUint32(nil,
				uint32(len(b)))...)
		}
	}
	return append(out, layout.Magic...)
}

func sampleForVotes(t *testing.T, arrow string, groups int) []byte {
	return writeSample(t, votedRows, map[string]string{"generation": "A", "crc": "false", "sync": "0",
		"arrow-schema": arrow, "row-group-rows": fmt.Sprint(votedRows / groups), "page-size": "200", "index": "false"})
}

const votedRows = 30

func voteInFile(t *testing.T, arrow string, groups int) {
	voteIn(t, "arrow-schema="+arrow, sampleForVotes(t, arrow, groups), groups)
}

func voteIn(t *testing.T, kind string, whole []byte, groups int) {
	nodes, err := describeAll(target(whole))
	if err != nil {
		t.Fatal(err)
	}
	want := readVoted(t, whole, false, nil)
	group, col, chunks := -1, -1, 0
	for _, n := range nodes {
		if k, _ := fmt.Sscanf(n.Name, "row_groups[%d].columns[%d]", &group, &col); k == 2 {
			chunks++
		}
		for bit := 0; n.Name == "column_metadata" && bit < 8*int(n.At.Len); bit++ {
			if bit%effort.Step(3, 7) > 0 {
				continue
			}
			data := slices.Clone(whole)
			data[int(n.At.Off)+bit/8] ^= 1 << (bit % 8)
			for _, recover := range []bool{false, true} {
				what := fmt.Sprintf("%s, row group %d of %d, column %d, bit %d, recover %v", kind, group, groups, col,
					bit, recover)
				got := readVoted(t, data, recover, func(err error) {
					if groups > 2 || !errors.Is(err, fault.Corrupt) && !errors.Is(err, fault.Unsupported) {
						t.Errorf("%s: %v", what, err)
					}
				})
				if got == nil {
					continue
				}
				checkVoted(t, what, got, want, group, col, groups)
				if len(got.lost) > 0 && !reports(data, format.Sums) {
					t.Errorf("%s: cells are lost, and verify reports nothing", what)
				}
			}
		}
	}
	if chunks != 3*groups {
		t.Errorf("%d chunks", chunks)
	}
}

// voted is what was read of a file.
type voted struct {
	names []string
	cells [][]string      // by column, row
	lost  map[[2]int]bool // by row group, and column or -1
	told  bool            // there are findings

	schema string
}

func readVoted(t *testing.T, file []byte, recover bool, failed func(error)) *voted {
	t.Helper()
	tab, err := stoa.Open(ctx, "f.red", stoa.OpenOptions{Tree: store.NewMemory(map[string][]byte{"f.red": file}),
		Recover: recover})
	if err != nil {
		failed(err)
		return nil
	}
	defer tab.Close()
	v := &voted{names: namesOf(tab), lost: map[[2]int]bool{}, told: len(tab.Findings()) > 0,
		schema: tab.Schema().String()}
	v.cells = make([][]string, len(v.names))
	spec := stoa.ScanSpec{Damaged: stoa.NullCells, Lost: func(l region.Loss) {
		v.lost[[2]int{l.Group, slices.Index(v.names, l.Column)}] = true
	}}
	for b, err := range tab.Scan(ctx, spec) {
		if err != nil {
			failed(err)
			return nil
		}
		for c := range v.cells {
			for i := range int(b.NumRows()) {
				v.cells[c] = append(v.cells[c], b.Column(c).ValueStr(i))
			}
		}
	}
	return v
}

// checkVoted compares what was read of a file with damage in one chunk with what was read before.
func checkVoted(t *testing.T, what string, got, want *voted, group, col, groups int) {
	t.Helper()
	each := len(want.cells[0]) / groups
	if got.schema != want.schema {
		if groups > 2 || !got.told {
			t.Errorf("%s: the columns are %s, were %s", what, got.schema, want.schema)
		}
		return
	}
	for l := range got.lost {
		if l[1] != col || l[0] != group && groups > 2 {
			t.Errorf("%s: lost: row group %d, column %d", what, l[0], l[1])
		}
	}
	for c := range want.cells {
		if len(got.cells[c]) != len(want.cells[c]) {
			t.Errorf("%s: %d rows", what, len(got.cells[c]))
			continue
		}
		for i := range want.cells[c] {
			if got.cells[c][i] != want.cells[c][i] && !got.lost[[2]int{i / each, c}] {
				t.Errorf("%s: row %d, column %d is %s, was %s", what, i, c, got.cells[c][i], want.cells[c][i])
			}
		}
	}
}
