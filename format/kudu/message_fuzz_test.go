package kudu

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"stoa/fault"
	"stoa/format/formattest"
	"stoa/format/kudu/internal/cluster"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/pbc"
	"stoa/format/kudu/internal/wal"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

// messages are the parsers of Kudu's protobuf messages without a fuzz target of their own.
var messages = map[string]func(c *wire.Cursor){
	"consensus":        func(c *wire.Cursor) { (&meta.Consensus{}).Parse(c) },
	"instance":         func(c *wire.Cursor) { (&fs.Instance{}).Parse(c) },
	"block manager":    func(c *wire.Cursor) { (&fs.DataDir{}).Parse(c) },
	"catalog table":    func(c *wire.Cursor) { cluster.ParseCatalogTable(c, "id") },
	"catalog tablet":   func(c *wire.Cursor) { cluster.ParseCatalogTablet(c, "id") },
	"block record":     func(c *wire.Cursor) { fs.ParseBlockRecord(c) },
	"partition":        func(c *wire.Cursor) { meta.ParsePartition(c) },
	"partition schema": func(c *wire.Cursor) { meta.ParsePartitionSchema(c) },
	"log header":       func(c *wire.Cursor) { wal.ParseHeader(c) },
	"log footer":       func(c *wire.Cursor) { wal.ParseFooter(c) },
	"log batch":        func(c *wire.Cursor) { wal.ParseBatch(c, true, func(wal.Entry) {}) },
	"alter":            func(c *wire.Cursor) { wal.ParseAlter(c) },
	"supplement":       func(c *wire.Cursor) { pbc.ParseSupHeader(c) },
	"schema": func(c *wire.Cursor) {
		if s := meta.ParseSchema(c); c.Err() == nil {
			s.Arrow()
			s.KeyText([]byte("\x80\x00\x00\x01abc"))
		}
	},
}

// FuzzMessages parses bytes as any of the messages: errors must have places within the bytes, and memory must be
// proportional to their number.
func FuzzMessages(f *testing.F) {
	kinds := slices.Sorted(maps.Keys(messages))
	for i, kind := range kinds {
		f.Add(uint8(i), []byte("\x08\x01\x12\x03abc"))
		for _, pattern := range map[string][]string{"consensus": {"testdata/*/wal/consensus-meta/*"},
			"instance": {"testdata/*/wal/instance"}, "block manager": {"testdata/*/data/data/block_manager_instance"},
			"block record": {"testdata/log/data/data/*.metadata"}}[kind] {
			names, _ := filepath.Glob(pattern)
			for _, n := range names {
				if b, err := os.ReadFile(n); err != nil {
					f.Fatal(err)
				} else if r, err := pbc.Open(context.Background(), mustSource(b), "s", pbc.Options{}); err == nil {
					if rec, err := r.Next(context.Background()); err == nil {
						f.Add(uint8(i), rec.Data)
					}
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		before := formattest.Allocated()
		var cover region.Coverage
		at := fault.Span{Object: "m", Len: int64(len(data))}
		c := wire.NewCursor(data, at, "").Trace(cover.Add, 0)
		messages[kinds[int(kind)%len(kinds)]](c)
		var e *fault.Error
		if err := c.Err(); err != nil &&
			(!errors.As(err, &e) || e.Class == fault.Bug || e.Class == fault.Invalid || e.At.Object != "m" ||
				e.At.Off < 0 || e.At.End() > at.End()) {
			t.Fatal(err)
		}
		if _, overlaps := cover.Check(at); len(overlaps) > 0 {
			t.Fatalf("%v are read twice", overlaps)
		}
		if n := formattest.Allocated() - before; n > int64(len(data))*4096+4<<20 {
			t.Errorf("%d bytes were allocated for %d", n, len(data))
		}
	})
}

// FuzzSchemaFile reads the JSON of --schema.
func FuzzSchemaFile(f *testing.F) {
	f.Add([]byte(`{"fields": [{"name": "id", "type": "int64", "nullable": false, "metadata": {"stoa.key": "0", ` +
		`"stoa.type": "int64", "stoa.column_id": "10", "stoa.encoding": "bitshuffle", "stoa.compression": "lz4"}}, ` +
		`{"name": "d", "type": "decimal128(9, 2)", "nullable": true}]}`))
	f.Add([]byte(`{"fields": [{"name": "t", "type": "timestamp[us, tz=UTC]"}, {"name": "s", "type": "utf8", ` +
		`"metadata": {"stoa.type": "varchar"}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, _, err := cluster.ReadSchemaFile(t.Context(), store.NewMemory(map[string][]byte{"s": b}), "s")
		var e *fault.Error
		if err != nil {
			if !errors.As(err, &e) || e.Class == fault.Bug {
				t.Fatal(err)
			}
			return
		}
		s.Arrow()
		for i := range s.Columns {
			if why := s.Columns[i].Check(); why != "" {
				t.Errorf("column %d: %s", i, why)
			}
		}
	})
}
