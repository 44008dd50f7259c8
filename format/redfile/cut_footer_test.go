package redfile_test

import (
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
)

// compactReader reads structs of Thrift's compact protocol, as its document describes them, without stoa's parser.
type compactReader struct {
	b  []byte
	at int
}

func (c *compactReader) uvarint() uint64 {
	v, n := binary.Uvarint(c.b[c.at:])
	c.at += n
	return v
}

// fields calls f for each field of the struct that begins here; f may return false, and then the value is skipped.
func (c *compactReader) fields(f func(id int, typ byte) bool) {
	for id := 0; ; {
		head := c.b[c.at]
		if c.at++; head == 0 {
			return
		}
		if head>>4 != 0 {
			id += int(head >> 4)
		} else {
			id = int(c.uvarint() >> 1)
		}
		if f == nil || !f(id, head&15) {
			c.skip(head & 15)
		}
	}
}

// items calls f for each element of the list that begins here, and skips the elements if f is nil.
func (c *compactReader) items(f func(i int)) {
	head := c.b[c.at]
	c.at++
	n := int(head >> 4)
	if n == 15 {
		n = int(c.uvarint())
	}
	for i := range n {
		if f == nil {
			c.skip(head & 15)
			continue
		}
		f(i)
	}
}

func (c *compactReader) skip(typ byte) {
	switch typ {
	case 1, 2:
	case 3:
		c.at++
	case 4, 5, 6:
		c.uvarint()
	case 7:
		c.at += 8
	case 8:
		n := int(c.uvarint())
		c.at += n
	case 9, 10:
		c.items(nil)
	case 12:
		c.fields(nil)
	default:
		panic("a type that RedFile has not")
	}
}

// footerEnds says where in a file the structures of its metadata end.
type footerEnds struct {
	begin, schema int
	groups        []groupEnd
}

type groupEnd struct {
	chunks []int    // where the ColumnMetaData of each column ends
	fields []string // the top-level field of each column
	rows   int
	flat   []bool // the column has one value per row
}

func endsOf(file []byte) (e footerEnds) {
	e.begin = len(file) - 8 - int(binary.LittleEndian.Uint32(file[len(file)-8:]))
	c := &compactReader{file, e.begin}
	c.fields(func(id int, typ byte) bool {
		switch id {
		case 2:
			c.items(nil)
			e.schema = c.at
		case 4:
			c.items(func(int) { e.groups = append(e.groups, groupEndOf(c)) })
		default:
			return false
		}
		return true
	})
	return e
}

func groupEndOf(c *compactReader) (g groupEnd) {
	var values []int
	c.fields(func(id int, typ byte) bool {
		switch id {
		case 1:
			c.items(func(int) {
				c.fields(func(id int, typ byte) bool {
					if id != 3 {
						return false
					}
					c.fields(func(id int, typ byte) bool {
						switch id {
						case 3:
							c.items(func(i int) {
								n := int(c.uvarint())
								if i == 0 {
									g.fields = append(g.fields, string(c.b[c.at:][:n]))
								}
								c.at += n
							})
						case 5:
							values = append(values, int(c.uvarint()>>1))
						default:
							return false
						}
						return true
					})
					g.chunks = append(g.chunks, c.at)
					return true
				})
			})
		case 3:
			g.rows = int(c.uvarint() >> 1)
		default:
			return false
		}
		return true
	})
	for _, n := range values {
		g.flat = append(g.flat, n == g.rows)
	}
	return g
}

// TestCutFooter: a file of 2013, whose chunks are described only at its end, is recovered as far as that description
// goes, wherever in it the file is cut: the rows are those that the generator of the file computed, and the columns
// that are described have their values even in the row group where the description ends.
func TestCutFooter(t *testing.T) {
	cuts, rowsBack := 0, 0
	for _, cf := range corpusFiles(t, golden) {
		if !strings.HasPrefix(cf.File, "red1/") {
			continue
		}
		file, err := os.ReadFile(filepath.Join(golden, cf.File))
		if err != nil {
			t.Fatal(err)
		}
		want := expected(t, filepath.Join(golden, cf.Expect))
		ends := endsOf(file)
		step, r := 4, rand.New(rand.NewPCG(17, 17))
		if testing.Short() {
			step = 41
		}
		for cut := ends.begin + 1; cut < len(file); cut += 1 + r.IntN(2*step-1) {
			cuts++
			rowsBack += checkCutFooter(t, cf.File, file, cut, &ends, want, nil)
			if cut > len(file)-8 || cut%4 != 0 {
				continue
			}
			tail := make([]byte, len(file)-cut) // overwritten instead of cut
			if cut%8 == 0 {
				for i := range tail {
					tail[i] = byte(r.Uint32())
				}
			}
			rowsBack += checkCutFooter(t, cf.File, file, cut, &ends, want, tail)
		}
	}
	t.Logf("%d cuts, %d rows", cuts, rowsBack)
	if cuts < 50 || rowsBack < 1000 {
		t.Errorf("%d cuts, %d rows came back: too few to mean anything", cuts, rowsBack)
	}
}

// checkCutFooter recovers the first cut bytes of a file, followed by tail, and compares the rows.
func checkCutFooter(t *testing.T, name string, file []byte, cut int, ends *footerEnds, want []string,
	tail []byte) (rows int) {
	t.Helper()
	data := append(slices.Clone(file[:cut]), tail...)
	tab, err := stoa.Open(t.Context(), "f.red", stoa.OpenOptions{Tree: target(data).Tree, Recover: true})
	if err != nil {
		if cut >= ends.schema {
			t.Errorf("%s, cut at %d of %d: %v", name, cut, len(file), err)
		}
		return 0
	}
	defer tab.Close()
	whole, part, known := 0, 0, map[string]bool{}
	for _, g := range ends.groups {
		if n := len(g.chunks); cut >= g.chunks[n-1] {
			whole += g.rows
			continue
		}
		for i, end := range g.chunks {
			if cut >= end && !known[g.fields[i]] {
				known[g.fields[i]] = true
				if g.flat[i] {
					part = g.rows
				}
			} else if cut < end {
				known[g.fields[i]] = false
			}
		}
		break
	}
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{Damaged: stoa.NullCells}) {
		if err != nil {
			t.Errorf("%s, cut at %d: %v", name, cut, err)
			return rows
		}
		for i := range int(b.NumRows()) {
			got := map[string]any{}
			for k, f := range tab.Schema().Fields() {
				put(got, f, b.Column(k), i, false)
			}
			checkCutRow(t, name, cut, rows, whole, got, want, known)
			rows++
		}
	}
	if rows < whole+part || rows > len(want) {
		t.Errorf("%s, cut at %d (tail %x): %d rows, %d are described whole and %d in part", name, cut, tail, rows,
			whole, part)
	}
	if lost := len(tab.Findings()); lost == 0 {
		t.Errorf("%s, cut at %d: no finding", name, cut)
	}
	return rows
}

// checkCutRow compares a row with the one that the generator computed: in the first whole rows all cells, and in others
// those of the columns that are known.
func checkCutRow(t *testing.T, name string, cut, row, whole int, got map[string]any, want []string,
	known map[string]bool) {
	t.Helper()
	if row >= len(want) {
		return
	}
	if row < whole {
		if g := asJSON(got); g != want[row] {
			t.Errorf("%s, cut at %d: row %d is %s, was %s", name, cut, row, g, want[row])
		}
		return
	}
	var was map[string]json.RawMessage
	if err := json.Unmarshal([]byte(want[row]), &was); err != nil {
		t.Fatal(err)
	}
	for field, v := range got {
		if g := asJSON(v); g != string(was[field]) {
			t.Errorf("%s, cut at %d: row %d, field %s is %s, was %s", name, cut, row, field, g, was[field])
		}
	}
	for field := range was {
		if known[field] && got[field] == nil {
			t.Errorf("%s, cut at %d: row %d, field %s is missing, and its metadata is there", name, cut, row, field)
		}
	}
}

// TestCutFooterOfOurs: our own files have the metadata of each column after its pages, so that no row is lost; the
// beginning of the metadata at the end gives them the schema that was nowhere else.
func TestCutFooterOfOurs(t *testing.T) {
	for _, opts := range []map[string]string{{"sync": "0"}, {"sync": "0", "protocol": "binary"},
		{"sync": "0", "arrow-schema": "false"}, {}} {
		opts["row-group-rows"] = "10"
		file := writeSample(t, 40, opts)
		begin := len(file) - 8 - int(binary.LittleEndian.Uint32(file[len(file)-8:]))
		for cut := begin + 1; cut < len(file); cut += 7 {
			if n := rowsRecovered(t, target(file[:cut]).Tree); n != 40 {
				t.Errorf("%v, cut at %d: %d rows of 40", opts, cut, n)
			}
		}
	}
}
