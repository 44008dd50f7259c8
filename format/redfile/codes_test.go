package redfile_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile"
	"stoa/region"
	"stoa/store"
	"stoa/store/faulty"
)

// anatomy is a file with the table of the killed writers (40 rows in two row groups, pages of ten ids), and the
// locations of its parts.
type anatomy struct {
	t     *testing.T
	bytes []byte
	nodes []region.Node
}

func anatomyOf(t *testing.T, opts map[string]string) *anatomy {
	t.Helper()
	all := map[string]string{"row-group-rows": "20", "page-size": "80", "compression": "none"}
	for k, v := range opts {
		all[k] = v
	}
	a := &anatomy{t: t, bytes: writeSample(t, 40, all)}
	var err error
	if a.nodes, err = describeAll(target(a.bytes)); err != nil {
		t.Fatal(err)
	}
	return a
}

// at returns the location of the structure at path; each name may be a prefix.
func (a *anatomy) at(path ...string) fault.Span {
	a.t.Helper()
	i := 0
	for _, n := range a.nodes {
		if strings.HasPrefix(n.Name, path[i]) && (i > 0 || n.Depth == 0) {
			if i++; i == len(path) {
				return n.At
			}
		}
	}
	a.t.Fatalf("there is no %v", path)
	return fault.Span{}
}

// exchange replaces the first occurrence of a number at or after an offset.
func (a *anatomy) exchange(from, old, to int64) {
	a.t.Helper()
	was, is := binary.AppendUvarint(nil, uint64(2*old)), binary.AppendUvarint(nil, uint64(2*to))
	k := bytes.Index(a.bytes[from:], was)
	if k < 0 || len(was) != len(is) {
		a.t.Fatalf("there is no %d, or %d takes more bytes", old, to)
	}
	copy(a.bytes[int(from)+k:], is)
}

// TestCodes: each kind of damage, made by hand, is reported with its code, location, column and rows.
func TestCodes(t *testing.T) {
	const id, second, list, later = "row_groups[0].columns[0]", "row_groups[0].columns[1]",
		"row_groups[0].columns[2]", "row_groups[1].columns[0]"
	for _, c := range []struct {
		code   string
		opts   map[string]string
		harm   func(a *anatomy) fault.Span // changes a.bytes, and returns the location that should be reported
		column string
		rows   [2]int64
		depth  format.Depth
	}{
		{"redfile.page.crc", nil, func(a *anatomy) fault.Span {
			a.bytes[a.at(id, "page[1]", "body").Off] ^= 1
			return a.at(id, "page[1]")
		}, "id", [2]int64{10, 20}, format.Sums},
		{"redfile.page.header", map[string]string{"index": "false"}, func(a *anatomy) fault.Span {
			a.bytes[a.at(id, "page[1]").Off] = 0xff
			return a.at(id, "page[1]").Sub(0, 1)
		}, "id", [2]int64{10, 20}, format.Quick},
		{"redfile.page.unknown", nil, func(a *anatomy) fault.Span {
			at := a.at(id, "page[2]")
			a.bytes[at.Off+1] = 2 * 7 // zig-zag: it was type 1, an index page
			return at
		}, "", [2]int64{-1, -1}, format.Quick},
		{"redfile.magic", nil, func(a *anatomy) fault.Span {
			a.bytes[0] = 'X'
			return a.at("magic")
		}, "", [2]int64{-1, -1}, format.Quick},
		{"redfile.footer.crc", nil, func(a *anatomy) fault.Span {
			a.bytes[bytes.LastIndex(a.bytes, []byte("writer"))] ^= 1
			return a.at("file_metadata")
		}, "", [2]int64{-1, -1}, format.Quick},
		{"redfile.footer.literal", nil, func(a *anatomy) fault.Span {
			n := a.bytes[len(a.bytes)-8:]
			binary.LittleEndian.PutUint32(n, binary.LittleEndian.Uint32(n)+8)
			return fault.Span{Object: "f.red", Off: int64(len(a.bytes)) - 8, Len: 4}
		}, "", [2]int64{-1, -1}, format.Quick},
		// the chunk ends with its first page, then
		{"redfile.column.count", map[string]string{"crc": "false"}, func(a *anatomy) fault.Span {
			var values int
			for k, n := range a.nodes {
				if strings.HasPrefix(n.Name, list) && n.Depth == 0 {
					if _, err := fmt.Sscanf(a.nodes[k+1].Value, "DATA_PAGE, %d values", &values); err != nil {
						a.t.Fatal(a.nodes[k+1], err)
					}
				}
			}
			count := a.bytes[a.at(list, "column_metadata", "num_values").Off:][:2]
			footer := a.bytes[a.at("file_metadata").Off:]
			footer[bytes.Index(footer[bytes.Index(footer, []byte("item")):], count)+bytes.Index(footer,
				[]byte("item"))+1] = byte(2 * values)
			return a.at(list)
		}, "list.item", [2]int64{0, 20}, format.Sums},
		{"redfile.column.copy", nil, func(a *anatomy) fault.Span {
			at := a.at(id, "column_metadata", "num_values")
			a.bytes[at.Off+1] = 2 * 10
			return a.at(id, "column_metadata")
		}, "id", [2]int64{-1, -1}, format.Quick},
		{"redfile.column.damaged", map[string]string{"generation": "A"}, func(a *anatomy) fault.Span {
			at := a.at(later, "column_metadata", "type")
			a.bytes[at.Off+1] = 2 * 1 // INT32, and the column is INT64
			return at.Sub(0, 1)
		}, "id", [2]int64{20, 40}, format.Quick},
		{"redfile.unsupported", map[string]string{"crc": "false"}, func(a *anatomy) fault.Span {
			at := a.at("file_metadata", "row_groups", "columns", "codec")
			a.bytes[at.Off+1] = 2 * 3 // LZO
			return a.at("file_metadata")
		}, "id", [2]int64{0, 20}, format.Quick},
		{"redfile.index.damaged", nil, func(a *anatomy) fault.Span {
			a.bytes[a.at(id, "page[2]", "body").Off] ^= 1
			return a.at(id, "page[2]")
		}, "id", [2]int64{-1, -1}, format.Quick},
		{"redfile.index.bounds", map[string]string{"crc": "false"}, func(a *anatomy) fault.Span {
			body := a.at(id, "page[2]", "body")
			most := binary.LittleEndian.AppendUint64(nil, 9*1000003-7) // of the ids of the first page, which ascend
			k := bytes.Index(a.bytes[body.Off:body.End()], most)
			a.bytes[body.Off+int64(k)] ^= 1
			return a.at(id, "page[0]")
		}, "id", [2]int64{-1, -1}, format.Sums},
		{"redfile.sync.damaged", map[string]string{"sync": "1"}, func(a *anatomy) fault.Span {
			at := a.at("sync", "body")
			a.bytes[at.Off+2] ^= 1
			return at
		}, "", [2]int64{-1, -1}, format.Quick},
		{"redfile.coverage.gap", nil, func(a *anatomy) fault.Span { // offsets from the beginning stay correct
			at := a.at("file_metadata").Off
			a.bytes = slices.Insert(a.bytes, int(at), []byte("strange")...)
			return fault.Span{Object: "f.red", Off: at, Len: 7}
		}, "", [2]int64{-1, -1}, format.Quick},
		{"redfile.column.damaged", map[string]string{"crc": "false", "index": "false"}, func(a *anatomy) fault.Span {
			first := a.at(id) // another column starts at its offset
			a.exchange(a.at("file_metadata").Off, a.at(second).Off, first.Off)
			return fault.Span{Object: "f.red", Off: first.Off, Len: a.at(id, "column_metadata").Off - first.Off}
		}, "id", [2]int64{0, 20}, format.Quick},
		{"redfile.coverage.overlap", map[string]string{"generation": "A"}, func(a *anatomy) fault.Span {
			at := a.at(id, "column_metadata")
			a.bytes[at.End()-2] ^= 1 << 4 // its list of keys and values has one, not none
			return a.at(second)
		}, "", [2]int64{-1, -1}, format.Quick},
	} {
		a := anatomyOf(t, c.opts)
		if len(slices.Collect(redfile.Format.Verify(ctx, target(a.bytes), format.OpenOptions{Depth: c.depth}))) > 0 {
			t.Fatalf("%s: the whole file is not healthy", c.code)
		}
		want := c.harm(a)
		found := slices.Collect(redfile.Format.Verify(ctx, target(a.bytes), format.OpenOptions{Depth: c.depth}))
		if !slices.ContainsFunc(found, func(f region.Finding) bool {
			return f.Code == c.code && f.At.Off == want.Off && f.At.End() <= want.End() && f.Column == c.column &&
				f.Rows == c.rows
		}) {
			t.Errorf("%s of %q, rows %v, at %s is not reported, but %+v", c.code, c.column, c.rows, want, found)
		}
	}
}

// TestRecoveryCodes: findings of recovery for a file that has lost its end, and for one that is also damaged before its
// end.
func TestRecoveryCodes(t *testing.T) {
	a := anatomyOf(t, map[string]string{"sync": "100"})
	cut := a.bytes[:a.at("file_metadata").Off]
	recovered := func(b []byte) []region.Finding {
		t.Helper()
		r, found, err := redfile.Format.Recover(ctx, target(b), format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		return found
	}
	check := func(what string, found []region.Finding, code string, off int64, rows [2]int64) {
		t.Helper()
		if !slices.ContainsFunc(found, func(f region.Finding) bool {
			return f.Code == code && f.At.Off == off &&
				f.Rows == rows
		}) {
			t.Errorf("%s: %s at %d, rows %v, is not reported, but %+v", what, code, off, rows, found)
		}
	}
	check("cut", recovered(cut), "redfile.recovered", 0, [2]int64{0, 40})
	bad := slices.Clone(cut)
	page := a.at("row_groups[1].columns[0]", "page[1]")
	clear(bad[page.Off : page.Off+20])
	check("a page's header", recovered(bad), "redfile.bytes.lost", page.Off, [2]int64{-1, -1})
	bad = slices.Clone(cut)
	var syncs []region.Node
	for _, n := range a.nodes {
		if n.Depth == 0 && n.Name == "sync" {
			syncs = append(syncs, n)
		}
	}
	bad[syncs[1].At.End()-2] ^= 1
	check("a sync block", recovered(bad), "redfile.sync.damaged", syncs[1].At.Off, [2]int64{-1, -1})
}

// TestReadCode: a store that fails is not damage: verify reports it under a separate code.
func TestReadCode(t *testing.T) {
	data := writeSample(t, 40, nil)
	reported := 0
	for k := int64(0); ; k++ {
		tree := &faulty.Tree{Tree: store.NewMemory(map[string][]byte{"f.red": data}), At: k, Mode: faulty.Fail}
		found := slices.Collect(redfile.Format.Verify(ctx, format.Target{Tree: tree, Name: "f.red"},
			format.OpenOptions{}))
		if !tree.Hit.Load() {
			break
		}
		for _, f := range found {
			if f.Code == "redfile.read" && f.Severity == region.Error && f.At.Object == "f.red" {
				reported++
			} else {
				t.Errorf("operation %d fails: %+v", k, f)
			}
		}
	}
	if reported == 0 {
		t.Error("nothing was reported")
	}
}

// TestUnlistedParts: for a split table that has lost its metadata, a finding about the last part states that there may
// have been more parts.
func TestUnlistedParts(t *testing.T) {
	objects := splitTable(t, map[string]string{})
	delete(objects, "out/_metadata.red")
	for _, name := range []string{"out/part-00000.red", "out/part-00002.red", "out/part-00003.red"} {
		reported := findings(format.Target{Tree: store.NewMemory(objects), Name: name})
		if last := strings.Contains(name, "3"); last != (len(reported) == 1) {
			t.Errorf("%s: %+v", name, reported)
		} else if last && (reported[0].Code != "redfile.parts.unlisted" || reported[0].Severity != region.Error ||
			reported[0].At.Object != name || reported[0].Lost != -1) {
			t.Errorf("%s: %+v", name, reported)
		}
	}
}
