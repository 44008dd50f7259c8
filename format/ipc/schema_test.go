package ipc_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowipc "github.com/apache/arrow-go/v18/arrow/ipc"

	"stoa/fault"
	"stoa/format"
	"stoa/format/ipc"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

func polarsFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func inMemory(b []byte) *store.Memory { return store.NewMemory(map[string][]byte{"t": b}) }

// rowsOf returns the number of rows of a reader, and the last error.
func rowsOf(t *testing.T, r format.Reader) (rows int64, last error) {
	t.Helper()
	q := format.Query{}
	for i := range r.Columns() {
		q.Cols = append(q.Cols, i)
	}
	groups, err := r.RowGroups(t.Context(), format.Part{Ref: "t"}, q)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		for b, err := range r.(format.Batcher).Batches(t.Context(), g, q, vec.Range{}, nil) {
			if err != nil {
				last = err
				continue
			}
			rows += b.NumRows()
		}
	}
	return rows, last
}

// TestSchemaWithoutPrefix: Polars omits the prefix of the schema at the beginning of a file. That is no finding, every
// byte is claimed, and the rows are those of the footer's schema.
func TestSchemaWithoutPrefix(t *testing.T) {
	files, _ := filepath.Glob("testdata/*polars*.arrow")
	if len(files) != 5 {
		t.Fatal(files)
	}
	for _, f := range files {
		b := polarsFile(t, filepath.Base(f))
		if string(b[8:12]) == "\xFF\xFF\xFF\xFF" {
			t.Errorf("%s: its schema has a prefix: nothing is tested", f)
		}
		if got := verified(t, inMemory(b)); len(got) != 0 {
			t.Errorf("%s: %+v", f, got)
		}
		for n, err := range ipc.Format.Describe(t.Context(), format.Target{Tree: inMemory(b), Name: "t"},
			format.DescribeOptions{}) {
			if err != nil || n.Kind == region.Gap {
				t.Errorf("%s: %+v, %v", f, n, err)
			}
		}
	}
}

// TestSchemaWithoutPrefixCut: recovery of a Polars file truncated anywhere after its schema returns the complete
// batches.
func TestSchemaWithoutPrefixCut(t *testing.T) {
	b := polarsFile(t, "least.polars.arrow")
	first := bytes.Index(b, []byte{0xFF, 0xFF, 0xFF, 0xFF}) // the batch
	const batchEnd = 576                                    // after its 8 + 200 + 192 bytes
	for cut := first + 8; cut < len(b); cut++ {
		r, found, err := ipc.Format.Recover(t.Context(), format.Target{Tree: inMemory(b[:cut]), Name: "t"},
			format.OpenOptions{})
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if len(found) != 1 || found[0].Code != "arrow.footer" {
			t.Errorf("cut at %d: %+v", cut, found)
		}
		rows, last := rowsOf(t, r)
		if want := int64(3); cut >= batchEnd && rows != want || cut < batchEnd && (rows != 0 || last == nil) {
			t.Errorf("cut at %d: %d rows, %v", cut, rows, last)
		}
		r.Close()
	}
	for _, name := range []string{"polars.zstd.arrow", "polars.oldest.arrow"} { // with dictionaries
		b := polarsFile(t, name)
		r, _, err := ipc.Format.Recover(t.Context(), format.Target{Tree: inMemory(b[:len(b)-20]), Name: "t"},
			format.OpenOptions{})
		if err != nil {
			t.Fatal(name, err)
		}
		if rows, last := rowsOf(t, r); rows != 20 {
			t.Errorf("%s: %d rows, %v", name, rows, last)
		}
		r.Close()
	}
}

// TestLeadingSchemaDamaged: whatever replaces the schema at the beginning of a file with a footer, no row is lost, and
// verify reports it unless it is still a schema of the same fields. If it is a schema of other fields, only recovery
// reads the file.
func TestLeadingSchemaDamaged(t *testing.T) {
	three, _ := threeBatches(t)
	first := int(binary.LittleEndian.Uint32(three[12:])) + 16
	for name, x := range map[string]struct {
		file []byte
		rows int64
		to   int
	}{"arrow-go": {three, 300, first}, "polars": {polarsFile(t, "least.polars.arrow"), 3, 176}} {
		tried, refused := 0, 0
		for from := 8; from < x.to; from++ {
			for _, n := range []int{1, 16, x.to - from} {
				b := bytes.Clone(x.file)
				for i := from; i < min(from+n, x.to); i++ {
					b[i] ^= 0x5A
				}
				tg := format.Target{Tree: inMemory(b), Name: "t"}
				r, err := ipc.Format.Open(t.Context(), tg, format.OpenOptions{})
				if e := new(fault.Error); errors.As(err, &e) && e.Class == fault.Corrupt && e.Path == "schema" {
					refused++
					if r, _, err = ipc.Format.Recover(t.Context(), tg, format.OpenOptions{}); err == nil {
						r.Close()
					}
					if got := verified(t, inMemory(b)); err != nil || len(got) != 1 || got[0].Code != "arrow.open" {
						t.Errorf("%s: bytes %d+%d: %v, %+v", name, from, n, err, got)
					}
					continue
				}
				if err != nil {
					t.Fatalf("%s: bytes %d+%d: %v", name, from, n, err)
				}
				if rows, last := rowsOf(t, r); rows != x.rows || last != nil {
					t.Fatalf("%s: bytes %d+%d: %d rows, %v", name, from, n, rows, last)
				}
				tried++
				r.Close()
				got := verified(t, inMemory(b))
				if n > 1 && from+n >= x.to && len(got) == 0 && from < 16 {
					t.Errorf("%s: bytes %d+%d: verify reports nothing", name, from, n)
				}
				for _, f := range got {
					if f.Code != "arrow.layout" || f.Severity == region.Error {
						t.Errorf("%s: bytes %d+%d: %+v", name, from, n, f)
					}
				}
			}
		}
		if refused == 0 || tried < 10*refused {
			t.Errorf("%s: %d times read, %d times refused", name, tried, refused)
		}
	}
}

// TestDifferentSchemas: if the schema at the beginning is intact but differs from the footer's, no row is returned, and
// verify reports it; recovery uses the one at the beginning.
func TestDifferentSchemas(t *testing.T) {
	file, _ := threeBatches(t)
	at := bytes.Index(file, []byte("\x01\x00\x00\x00n\x00")) + 4
	file[at] = 'x'
	want := fault.Span{Object: "t", Off: 8, Len: int64(binary.LittleEndian.Uint32(file[12:])) + 8}
	tg := format.Target{Tree: inMemory(file), Name: "t"}
	_, err := ipc.Format.Open(t.Context(), tg, format.OpenOptions{})
	if e := new(fault.Error); !errors.As(err, &e) || e.Class != fault.Corrupt || e.At != want {
		t.Errorf("%v", err)
	}
	got := verified(t, inMemory(file))
	if len(got) != 1 || got[0].Code != "arrow.open" || got[0].Severity != region.Error || got[0].At != want {
		t.Errorf("%+v", got)
	}
	recovered, found, err := ipc.Format.Recover(t.Context(), tg, format.OpenOptions{})
	if err != nil || !slices.ContainsFunc(found, func(f region.Finding) bool { return f.Code == "arrow.footer" }) {
		t.Fatal(found, err)
	}
	defer recovered.Close()
	var rows []int64
	groups, _ := recovered.RowGroups(t.Context(), format.Part{Ref: "t"}, format.Query{})
	for b := range recovered.(format.Batcher).Batches(t.Context(), groups[0], format.Query{Cols: []int{0}}, vec.Range{},
		nil) {
		rows = append(rows, b.Column(0).(*array.Int64).Int64Values()...)
	}
	if len(rows) != 300 || recovered.Schema().Field(0).Name != "x" {
		t.Errorf("recovery has %d rows of column %q", len(rows), recovered.Schema().Field(0).Name)
	}
}

// TestLongIntegers: a type of Polars' that Arrow does not have is refused, and is not damage.
func TestLongIntegers(t *testing.T) {
	b := polarsFile(t, "refused/int128.arrows")
	_, err := ipc.Format.Open(t.Context(), format.Target{Tree: inMemory(b), Name: "t"}, format.OpenOptions{})
	if !errors.Is(err, fault.Unsupported) || errors.Is(err, fault.Corrupt) {
		t.Error(err)
	}
	if got := verified(t, inMemory(b)); len(got) != 1 || got[0].Code != "arrow.unreadable" {
		t.Errorf("%+v", got)
	}
}

// TestStreamLaws: rows of a stream that are not returned are reported: with zeros in place of any message, bytes after
// the end mark, and a schema that has lost its columns. All other intact rows are returned.
func TestStreamLaws(t *testing.T) {
	whole, ends := streamOf(t, 3, nil)
	first := 8 + int(binary.LittleEndian.Uint32(whole[4:]))
	reported := func(name string, b []byte, rows int64) {
		t.Helper()
		tg := format.Target{Tree: inMemory(b), Name: "t"}
		r, err := ipc.Format.Open(t.Context(), tg, format.OpenOptions{})
		if err != nil {
			t.Fatal(name, err)
		}
		defer r.Close()
		got, last := rowsOf(t, r)
		findings := r.(format.Finder).Findings()
		unnoticed := last == nil && len(findings) == 0
		if bad := slices.ContainsFunc(verified(t, inMemory(b)), func(f region.Finding) bool {
			return f.Severity == region.Error
		}); bad == unnoticed {
			t.Errorf("%s: verify has an error %v, reading says %v and %+v", name, bad, last, findings)
		}
		if unnoticed && got != rows {
			t.Errorf("%s: %d rows of %d, and nothing is reported", name, got, rows)
		}
	}
	reported("whole", whole, 300)
	for _, end := range append([]int{first}, ends[:2]...) {
		for n := 4; n <= 300 && end+n <= len(whole); n++ {
			b := bytes.Clone(whole)
			clear(b[end : end+n])
			reported(fmt.Sprintf("%d zeros at %d", n, end), b, 300)
		}
		reported(fmt.Sprintf("cut at %d", end), whole[:end], 300)
	}
	for n := 1; n < 70; n++ {
		reported("zeros after", append(bytes.Clone(whole), make([]byte, n)...), -1)
		reported("bytes after", append(bytes.Clone(whole), bytes.Repeat([]byte{7}, n)...), -1)
	}
	reported("two streams", append(bytes.Clone(whole), whole...), 600)
	var none bytes.Buffer
	if err := arrowipc.NewWriter(&none, arrowipc.WithSchema(arrow.NewSchema(nil, nil))).Close(); err != nil {
		t.Fatal(err)
	}
	schema := none.Bytes()[:8+binary.LittleEndian.Uint32(none.Bytes()[4:])]
	reported("no columns", append(bytes.Clone(schema), whole[first:]...), -1)
}

// TestUnnamedBatches: a footer that omits a batch, or lists one twice in place of another, is refused by every reader,
// and recovery returns all rows.
func TestUnnamedBatches(t *testing.T) {
	file, _ := threeBatches(t)
	foot := len(file) - 10 - int(binary.LittleEndian.Uint32(file[len(file)-10:]))
	first := binary.LittleEndian.AppendUint64(nil, uint64(16+binary.LittleEndian.Uint32(file[12:])))
	blocks := foot + bytes.Index(file[foot:], first) // 24 bytes each, after their number
	if blocks < foot || binary.LittleEndian.Uint32(file[blocks-4:]) != 3 {
		t.Fatal("the blocks were not found")
	}
	damaged := map[string][]byte{}
	for n := range 3 {
		b := bytes.Clone(file)
		binary.LittleEndian.PutUint32(b[blocks-4:], uint32(n))
		damaged[fmt.Sprint(n, " blocks")] = b
		for k := range 3 {
			if k != n {
				b := bytes.Clone(file)
				copy(b[blocks+24*k:blocks+24*k+24], file[blocks+24*n:])
				damaged[fmt.Sprint("block ", n, " over ", k)] = b
			}
		}
	}
	for name, b := range damaged {
		tg := format.Target{Tree: inMemory(b), Name: "t"}
		if _, err := ipc.Format.Open(t.Context(), tg, format.OpenOptions{}); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: %v", name, err)
		}
		if got := verified(t, inMemory(b)); len(got) != 1 || got[0].Severity != region.Error {
			t.Errorf("%s: %+v", name, got)
		}
		r, found, err := ipc.Format.Recover(t.Context(), tg, format.OpenOptions{})
		if err != nil || len(found) != 1 {
			t.Fatal(name, found, err)
		}
		if rows, last := rowsOf(t, r); rows != 300 || last != nil {
			t.Errorf("%s: recovery gives %d rows, %v", name, rows, last)
		}
		r.Close()
	}
}
