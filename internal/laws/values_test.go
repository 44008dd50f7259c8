package laws_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/format/formattest"
	"stoa/store"
)

// TestWhatIsReadCanBeWritten: a value that no writer of a format can write is damage in a file of that format, and is
// never returned. So the format's writer accepts everything that is read from a damaged file without checksums.
// STOA_ROUNDS is the number of times that the file of each type is damaged.
func TestWhatIsReadCanBeWritten(t *testing.T) {
	flips := 100
	if testing.Short() {
		flips = 15
	}
	if n, err := strconv.Atoi(os.Getenv("STOA_ROUNDS")); err == nil {
		flips = n
	}
	plain := map[string]string{}
	for _, c := range []struct {
		format string
		opts   map[string]string
	}{
		{"carbon", plain}, {"carbon", map[string]string{"version": "1"}}, {"carbon", map[string]string{"version": "2"}},
		{"arrow", plain}, {"arrow", map[string]string{"stream": "true"}},
		{"parquet", map[string]string{"crc": "false", "compression": "none"}},
		{"parquet", map[string]string{"crc": "false", "compression": "none", "dictionary": "false"}},
		{"trevni", map[string]string{"checksum": "null"}}, {"trevni-avro", map[string]string{"checksum": "null"}},
		{"redfile", map[string]string{"crc": "false"}},
		{"redfile", map[string]string{"crc": "false", "generation": "A"}},
		{"cfile", map[string]string{"checksums": "false"}}, {"cfile", map[string]string{"version": "1"}},
	} {
		t.Run(fmt.Sprint(c.format, c.opts), func(t *testing.T) {
			read := 0
			for i, typ := range formattest.LeafTypes() {
				v := values{to: c.format, opts: c.opts, r: rand.New(rand.NewPCG(uint64(i), 5))}
				if file := v.file(t, typ); file != nil {
					for range flips {
						read += v.flip(t, file, typ)
					}
				}
			}
			if read < flips {
				t.Errorf("only %d damaged files could be read", read)
			}
		})
	}
}

// values generates files written in one particular way.
type values struct {
	to   string
	opts map[string]string
	r    *rand.Rand
}

// name returns the name of the file, by which CarbonData's format 1 is recognised.
func (v *values) name() string {
	if v.to == "carbon" {
		return "harmed.carbondata"
	}
	return "harmed." + v.to
}

// file returns a file with one column of type typ and values that the format can hold; nil if it can hold none.
func (v *values) file(t *testing.T, typ arrow.DataType) []byte {
	t.Helper()
	b := formattest.RandomTable(v.r, formattest.TableOptions{Rows: 60,
		Fields: []arrow.Field{{Name: "c", Type: typ, Nullable: true}}}).Batch
	defer b.Release()
	var rows []arrow.RecordBatch
	for i := range b.NumRows() {
		row := b.NewSlice(i, i+1)
		defer row.Release()
		_, err := v.write(t, b.Schema(), row)
		if err == nil {
			rows = append(rows, row)
		} else if !errors.Is(err, fault.Unsupported) && !errors.Is(err, fault.Invalid) {
			t.Fatal(typ, err)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	tree, err := v.write(t, b.Schema(), rows...)
	if err != nil {
		t.Fatal(typ, err)
	}
	return tree.Bytes(v.name())
}

func (v *values) write(t *testing.T, sc *arrow.Schema, rows ...arrow.RecordBatch) (*store.Memory, error) {
	t.Helper()
	tree := store.NewMemory(nil)
	w, err := stoa.Create(t.Context(), v.name(), sc, stoa.CreateOptions{To: v.to, Opts: v.opts,
		Sink: tree.Sink(v.name()), NoCheck: true})
	if err != nil {
		return nil, err
	}
	defer w.Abort(t.Context())
	for _, b := range rows {
		if err := w.Write(t.Context(), b); err != nil {
			return nil, err
		}
	}
	_, err = w.Close(t.Context())
	return tree, err
}

// flip damages a few bytes; it returns 1 if the file can still be read.
func (v *values) flip(t *testing.T, file []byte, typ arrow.DataType) int {
	t.Helper()
	file = append([]byte(nil), file...)
	at := v.r.IntN(len(file))
	if run := file[at:min(at+4, len(file))]; v.r.IntN(2) == 0 { // produces very large and very small numbers
		for i := range run[:1+v.r.IntN(len(run))] {
			run[i] = []byte{0xff, 0x80, 0}[v.r.IntN(3)]
		}
	} else {
		file[at] ^= 1 << v.r.IntN(8)
	}
	tree := store.NewMemory(map[string][]byte{v.name(): file})
	src, err := stoa.Open(t.Context(), v.name(), stoa.OpenOptions{Tree: tree, From: v.to})
	if err != nil {
		return 0
	}
	defer src.Close()
	var rows []arrow.RecordBatch
	defer func() {
		for _, b := range rows {
			b.Release()
		}
	}()
	for b, err := range src.Scan(t.Context(), stoa.ScanSpec{Alloc: memory.DefaultAllocator}) {
		if err != nil {
			return 0
		}
		b.Retain()
		rows = append(rows, b)
	}
	_, err = v.write(t, src.Schema(), rows...)
	if err != nil && !strings.Contains(err.Error(), "column name") {
		t.Errorf("%s, byte %d of %d: what was read cannot be written: %v", typ, at, len(file), err)
	}
	return 1
}
