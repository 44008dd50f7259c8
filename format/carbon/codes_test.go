package carbon_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowmem "github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/region"
	"stoa/store"
)

// broken is a tree in which data files cannot be opened.
type broken struct{ store.Tree }

func (b broken) Open(ctx context.Context, name string) (store.Source, error) {
	if strings.HasSuffix(name, ".carbondata") {
		return nil, errors.New("the disk is gone")
	}
	return b.Tree.Open(ctx, name)
}

// TestCodesOfFile damages CarbonData's file of one row by hand, at offsets that follow from its layout (see the
// description of the format); verify reports code, place and rows. The file has 2519 bytes: chunks begin at 607, that
// of id at 1091, that of c_int (220632218) at 1534; the footer is at 2177, its offset at 2511.
func TestCodesOfFile(t *testing.T) {
	const none = -1
	cInt := []byte{0, 0, 0, 0, 0x0d, 0x26, 0x94, 0x9a}
	raised := []byte{0, 0, 0, 0, 0x0d, 0x26, 0x94, 0x9b}
	for what, c := range map[string]struct {
		damage   func(b []byte) []byte
		code     string
		severity region.Severity
		column   string
		rows     [2]int64
		off, end int64 // bounds of the place
	}{
		"version 4 in the header": {func(b []byte) []byte { b[1] = 8; return b }, "carbon.header.damaged",
			region.Error, "", [2]int64{none, none}, 0, 607},
		"a type of the future": {func(b []byte) []byte { b[5] = 120; return b }, "carbon.unsupported",
			region.Error, "", [2]int64{none, none}, 0, 607},
		"numbers called dates": {func(b []byte) []byte {
			at := bytes.Index(b, []byte("c_long")) - 4 // data_type, before column_name
			if b[at] != 0x15 || b[at+1] != 6 {
				panic("this is another file")
			}
			b[at+1] = 14
			return b
		}, "carbon.page.damaged", region.Error, "c_long", [2]int64{0, 1}, 1000, 2177},
		"metadata of a chunk": {func(b []byte) []byte { b[1091] = 0xff; return b }, "carbon.chunk.damaged",
			region.Error, "id", [2]int64{0, 1}, 1091, 1210},
		"bounds in the footer": {func(b []byte) []byte {
			return append(b[:2177:2177],
				bytes.ReplaceAll(b[2177:], cInt, raised)...)
		},
			"carbon.blocklet.minmax", region.Error, "c_int", [2]int64{0, 1}, 1534, 1656},
		"bounds of the page": {func(b []byte) []byte {
			page := bytes.Replace(b[1534:1656], cInt, raised, 2)
			return append(append(b[:1534:1534], page...), b[1656:]...)
		}, "carbon.page.minmax", region.Error, "c_int", [2]int64{0, 1}, 1534, 1656},
		"bytes put in": {func(b []byte) []byte {
			b = append(append(b[:2177:2177], 1, 2, 3, 4, 5), b[2177:]...)
			binary.BigEndian.PutUint64(b[len(b)-8:], 2177+5)
			return b
		}, "carbon.footer.damaged", region.Error, "", [2]int64{none, none}, 2182, 2516},
		"two rows for one, of a number": {func(b []byte) []byte { b[2178], b[2399], b[2469] = 4, 4, 4; return b },
			"carbon.page.damaged", region.Error, "id", [2]int64{0, 2}, 1091, 1210},
		"two rows for one, of a date": {func(b []byte) []byte { b[2178], b[2399], b[2469] = 4, 4, 4; return b },
			"carbon.page.damaged", region.Error, "c_date", [2]int64{0, 2}, 718, 788},
	} {
		tree := loaded(t, filepath.Join(golden2, "v3/onerow/table"))
		file := ""
		for _, n := range tree.Names() {
			if strings.HasSuffix(n, ".carbondata") {
				file = n
			}
		}
		whole := tree.Bytes(file)
		if len(whole) != 2519 || bytes.Count(whole[1534:1656], cInt) < 2 || bytes.Count(whole[2177:], cInt) != 2 {
			t.Fatal("this is another file")
		}
		b := c.damage(bytes.Clone(whole))
		found := findings(t, store.NewMemory(map[string][]byte{file: b}), file)
		stated := only(found, c.code)
		if len(stated) == 0 {
			t.Errorf("%s: got %v, want %s", what, found, c.code)
			continue
		}
		ok := false
		for _, f := range stated {
			ok = ok || f.Severity == c.severity && f.At.Object == file && f.At.Off >= c.off &&
				f.At.End() <= c.end && f.Column == c.column && f.Rows == c.rows
		}
		if !ok {
			t.Errorf("%s: %+v", what, stated)
		}
	}
}

// TestCodesOfOthers: the other codes, one case for each.
func TestCodesOfOthers(t *testing.T) {
	one := loaded(t, filepath.Join(golden2, "v3/onerow/table"))
	for _, f := range only(verdict(t, broken{one}), "carbon.read") {
		if !strings.Contains(f.Message, "the disk is gone") || f.Severity != region.Error {
			t.Errorf("unreadable: %+v", f)
		}
	}
	if !has(verdict(t, broken{one}), "carbon.read") {
		t.Error("an unreadable file: got no finding, want one")
	}

	del := loaded(t, filepath.Join(golden2, "managed/managed_del"))
	swap(t, del, "-1-1795249941724.deletedelta", ",50]", ",150]") // the page has 100 rows
	stated := only(verdict(t, del), "carbon.delete.range")
	if len(stated) != 1 || stated[0].Severity != region.Error ||
		!strings.Contains(stated[0].Message, "page 0: expected deleted rows below 100, found 150") ||
		stated[0].Path != "part-0-0_batchno0-0-1" {
		t.Errorf("a deleted row that does not exist: got %+v, %v", stated, verdict(t, del))
	}

	old := goldenFiles(t, "v2_b2000")
	const file = "t/Fact/Part0/Segment_0/part-0-0-0-1480000000000.carbondata"
	// the offsets of the chunks of country: 34 (with zeros after it), and 135122 in the second blocklet
	first, second := []byte{0xc4, 0x80, 0x00}, []byte{0xa4, 0xbf, 0x10}
	footer := old[file][340500:]
	if bytes.Count(footer, second) != 1 {
		t.Fatal("this is another file")
	}
	old[file] = append(old[file][:340500:340500], bytes.Replace(footer, second, first, 1)...)
	stated = only(findings(t, store.NewMemory(old), file), "carbon.chunk.damaged")
	if len(stated) != 1 || stated[0].Severity != region.Error || stated[0].At.Off < 34 || stated[0].At.Off >= 135122 {
		t.Errorf("a chunk before unclaimed bytes: got %+v", stated)
	}

	sc := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	b := array.NewRecordBuilder(arrowmem.NewGoAllocator(), sc)
	b.Field(0).(*array.StringBuilder).AppendValues([]string{"xa", "yb", "zc"}, nil)
	tree := store.NewMemory(nil)
	w, err := carbon.Format.Create(t.Context(), tree.Sink("t"), sc, format.WriteOptions{Rows: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(t.Context(), b.NewRecordBatch())); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	odd := bytes.ReplaceAll(tree.Bytes("t"), []byte("zc"), []byte{0xff, 0xfe}) // the value and its bounds
	stated = only(verdict(t, store.NewMemory(map[string][]byte{"t": odd})), "carbon.utf8")
	if len(stated) != 1 || stated[0].Severity != region.Note || stated[0].Column != "s" ||
		!strings.Contains(stated[0].Message, "row 2 ") || stated[0].At == (fault.Span{}) {
		t.Errorf("invalid UTF-8: got %+v", stated)
	}
}
