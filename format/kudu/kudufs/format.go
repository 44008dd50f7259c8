package kudufs

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu"
	"stoa/format/kudu/internal/meta"
	"stoa/internal/nest"
	"stoa/store"
)

// Format is format "kudu-fs", which can only be written; it is read as format kudu.
var Format = format.Format{
	Family:       "kudu",
	Name:         "kudu-fs",
	Title:        "directories of an Apache Kudu master and tablet server, on which these start",
	Create:       create,
	Reread:       func(*arrow.Schema, format.WriteOptions) (format.Format, bool) { return kudu.Format, true },
	Dictionaries: func(arrow.DataType) bool { return false },
	WriteKeys:    writing.Keys(),
	Mend:         mend,
	Assemble:     assemble,
	Assembled:    []string{masterDir, serverDir},
}

// writer is the format.Writer.
type writer struct {
	sink    store.Sink
	o       WriteOptions
	made    time.Time
	id      string // of the server
	manager string // block manager
	peers   []meta.Peer
	mem     memory.Allocator
	schema  *arrow.Schema
	table   meta.Tablet // what all tablets have in common
	from    []int       // the field of each column
	route   *router
	tablets []*tablet
	server  *server
	spool   *keySpool
	held    int64 // bytes of buffered rows, of all tablets
	rows    int64
	failed  error // of an earlier Write
}

// maxHeld is the maximum of writer.held: beyond it the largest tablet is flushed.
const maxHeld = 512 << 20

func create(ctx context.Context, s store.Sink, sc *arrow.Schema, wo format.WriteOptions) (format.Writer, error) {
	o, err := writing.Parse(wo.Opts)
	if err != nil {
		return nil, err
	}
	w := &writer{sink: s, o: o, made: o.moment(), mem: wo.Mem, schema: sc}
	if w.manager, err = blockManager(o.Manager); err != nil {
		return nil, err
	}
	if w.mem == nil {
		w.mem = memory.DefaultAllocator
	}
	was, err := tableOf(sc)
	if err != nil {
		return nil, err
	}
	if err := w.plan(was); err != nil {
		return nil, err
	}
	if w.server, err = newServer(ctx, s, serverDir, w.id, w.manager, w.made); err != nil {
		return nil, err
	}
	w.server.next = cmp.Or(uint64(o.FirstBlock), 1)
	for _, t := range w.tablets {
		t.DataDirs = []string{w.server.dir}
	}
	f, err := s.Scratch(ctx)
	if err != nil {
		return nil, err
	}
	w.spool = newKeySpool(f)
	return w, nil
}

// plan completes the options from was, the metadata of the Kudu table that the schema comes from, if any, and creates
// the table's tablets.
func (w *writer) plan(was kudu.TableMeta) (err error) {
	o, t := &w.o, &w.table
	if t.Table = cmp.Or(o.Table, was.Name); t.Table == "" {
		return fault.Invalidf("a Kudu table needs a name: option table=NAME")
	}
	t.TableID = cmp.Or(strings.ToLower(o.TableID), was.ID, madeID("table", t.Table))
	if w.peers, err = o.peers(); err != nil {
		return err
	}
	if w.id = strings.ToLower(o.Server); w.id == "" && w.peers != nil {
		w.id = w.peers[0].UUID
	}
	w.id = cmp.Or(w.id, madeID("server", t.TableID))
	if w.peers == nil {
		w.peers = []meta.Peer{{UUID: w.id, Voter: true, Address: defaultAddress}}
	}
	if t.Schema, w.from, err = schemaOf(w.schema, o.Key); err != nil {
		return err
	}
	t.State, t.LastDurableMRS, t.CountsLive = meta.TabletReady, -1, true
	t.Consensus = &meta.Consensus{Index: -1, Peers: w.peers}
	var parts []kudu.TabletMeta
	if t.Partitioning, parts, err = divide(was, &t.Schema, t.TableID, int32(o.Buckets)); err != nil {
		return err
	}
	if w.route, err = newRouter(&t.Schema, &t.Partitioning, parts); err != nil {
		return err
	}
	for _, p := range parts {
		one := *t
		one.ID, one.Partition = p.ID, meta.Partition{Buckets: p.Buckets, Start: p.Start, End: p.End}
		w.tablets = append(w.tablets, &tablet{Tablet: &one})
	}
	return nil
}

func (w *writer) Write(ctx context.Context, b arrow.RecordBatch) error {
	if w.failed == nil {
		w.failed = w.write(ctx, b)
	}
	return w.failed
}

// write adds the rows of a batch to their tablets.
func (w *writer) write(ctx context.Context, b arrow.RecordBatch) error {
	s := &w.table.Schema
	columns := make([]arrow.Array, len(w.from))
	for i, f := range w.from {
		if columns[i] = b.Column(f); !s.Columns[i].Nullable && columns[i].NullN() > 0 {
			return w.nulls(&s.Columns[i], columns[i])
		}
	}
	cells := keyCells{schema: s, columns: columns[:s.NumKeys]}
	rows, keys := make([][]int32, len(w.tablets)), make([][][]byte, len(w.tablets))
	for i := range int(b.NumRows()) {
		row, err := cells.row(i)
		if err != nil {
			return err
		}
		at, err := w.route.tablet(row)
		if err != nil {
			return err
		}
		key, err := s.Key(nil, row)
		if err != nil {
			return err
		}
		rows[at], keys[at] = append(rows[at], int32(i)), append(keys[at], key)
	}
	for at, t := range w.tablets {
		if len(rows[at]) == 0 {
			continue
		}
		if err := w.gather(ctx, t, columns, rows[at], keys[at]); err != nil {
			return err
		}
	}
	w.rows += b.NumRows()
	return nil
}

// nulls is the error of a batch with nulls in a column that is not nullable in Kudu.
func (w *writer) nulls(c *meta.Column, values arrow.Array) error {
	first := 0
	for !values.IsNull(first) {
		first++
	}
	why := "column %q has no nulls"
	if c.Key {
		why = "column %q is in the primary key, which has no nulls"
	}
	return fault.Invalidf(why+"; row %d, counted from 0, has one, and so have %d rows of the %d from row %d on", c.Name,
		w.rows+int64(first), values.NullN(), values.Len(), w.rows)
}

// gather adds rows of a batch to a tablet, and writes rowsets when there is enough for one.
func (w *writer) gather(ctx context.Context, t *tablet, columns []arrow.Array, rows []int32, keys [][]byte) error {
	picked := make([]arrow.Array, 0, len(columns))
	defer func() { release(picked) }()
	var size int64
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		p, err := nest.Take(c, rows, w.mem)
		if err != nil {
			return err
		}
		picked = append(picked, p)
		size += nest.SizeOfRows(p, 0, int64(p.Len()))
		fields[i] = w.schema.Field(w.from[i])
	}
	before := t.bytes
	t.add(array.NewRecordBatch(arrow.NewSchema(fields, nil), picked, int64(len(rows))), keys, size)
	if w.held += t.bytes - before; t.bytes >= w.o.rowSet() {
		return w.flush(ctx, t)
	}
	for w.held > maxHeld {
		largest := slices.MaxFunc(w.tablets, func(a, b *tablet) int { return cmp.Compare(a.bytes, b.bytes) })
		if err := w.flush(ctx, largest); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) flush(ctx context.Context, t *tablet) error {
	w.held -= t.bytes
	return t.flush(ctx, w.server, w.spool, w.mem)
}

// Close writes the buffered rows, then the superblocks and the master's catalogue.
func (w *writer) Close(ctx context.Context) (sum format.Summary, err error) {
	if w.failed == nil {
		w.failed = w.close(ctx)
	}
	if w.failed != nil {
		return sum, w.failed
	}
	return format.Summary{Rows: w.rows, Bytes: w.server.bytes, Files: w.server.files}, w.sink.Commit(ctx)
}

func (w *writer) close(ctx context.Context) error {
	var metas []*meta.Tablet
	for _, t := range w.tablets {
		metas = append(metas, t.Tablet)
		if err := w.flush(ctx, t); err != nil {
			return err
		}
		key, err := w.spool.duplicate(t.written)
		if err == nil && key != nil {
			err = t.duplicateKey(key)
		}
		if err != nil {
			return err
		}
		if err := w.server.tablet(ctx, t.Tablet); err != nil {
			return err
		}
	}
	if err := errors.Join(w.server.finish(ctx), w.spool.file.Close()); err != nil {
		return err
	}
	w.spool = nil
	m, err := newServer(ctx, w.sink, masterDir, madeID("master", w.table.TableID), w.manager, w.made)
	if err != nil {
		return err
	}
	if err := writeCatalog(ctx, m, catalogOf(metas, w.made.Unix()), w.mem); err != nil {
		return err
	}
	if err := m.finish(ctx); err != nil {
		return err
	}
	w.server.bytes += m.bytes
	w.server.files = append(w.server.files, m.files...)
	return nil
}

func (w *writer) Abort(ctx context.Context) error {
	var err error
	if w.spool != nil {
		err = w.spool.file.Close()
		w.spool = nil
	}
	for _, t := range w.tablets {
		t.clear()
	}
	err = errors.Join(err, w.server.abort())
	return errors.Join(err, w.sink.Abort(ctx))
}
