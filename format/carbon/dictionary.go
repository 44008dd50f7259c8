package carbon

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/thrift"
	"stoa/store"
	"stoa/vec"
	"stoa/wire"
)

// A global dictionary is kept apart from the data, in three files of the table's Metadata directory, named by the column's id:
//
//	ID.dict             ColumnDictionaryChunk{1: list<binary> values}, one behind the other; each load appends. The values count from
//	                    code 1, which is null ("@NU#LL$!")
//	ID.dictmeta         ColumnDictionaryChunkMeta, one a load: which codes, which bytes of ID.dict, how many chunks
//	ID_SIZE.sortindex   ColumnSortInfo: the codes in the order of their values, and its inverse; SIZE is that of ID.dict. Old ones stay.
//
// All are Thrift's compact protocol without anything between the structures. A load writes .dict, then .dictmeta, then .sortindex,
// then the data: what is in .dict behind the last load that .dictmeta names belongs to a load that did not finish.
const (
	dictExt     = ".dict"
	dictMetaExt = ".dictmeta"
	sortExt     = ".sortindex"
)

// dictLoad is ColumnDictionaryChunkMeta: what one load appended.
type dictLoad struct {
	min, max   int64 // codes
	start, end int64 // bytes of the .dict
	chunks     int64
}

func parseDictLoad(r *thrift.Reader, name string) (d dictLoad) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			d.min = int64(r.I32("min_surrogate_key"))
		case 2:
			d.max = int64(r.I32("max_surrogate_key"))
		case 3:
			d.start = r.I64("start_offset")
		case 4:
			d.end = r.I64("end_offset")
		case 5:
			d.chunks = int64(r.I32("chunk_count"))
		}
	}
	return d
}

// parseDictLoads reads a whole .dictmeta. What it understood is given also with an error.
func parseDictLoads(c *wire.Cursor) (loads []dictLoad) {
	r := thrift.NewReader(c, thrift.Compact)
	for c.Err() == nil && c.Left() > 0 {
		at := c.Pos()
		d := parseDictLoad(r, fmt.Sprintf("load[%d]", len(loads)))
		if c.Err() != nil {
			break
		}
		var last dictLoad
		if n := len(loads); n > 0 {
			last = loads[n-1]
		}
		switch {
		case d.start != last.end || d.end < d.start:
			c.Fail(at, c.Pos()-at, fmt.Sprintf("load[%d]", len(loads)), "bytes %d to %d, the load before ends at %d", d.start, d.end, last.end)
		case d.min != last.max+1 || d.max < d.min-1 || d.max > maxCode || d.chunks < 0:
			c.Fail(at, c.Pos()-at, fmt.Sprintf("load[%d]", len(loads)), "codes %d to %d in %d chunks, the load before ends with %d", d.min, d.max, d.chunks, last.max)
		default:
			loads = append(loads, d)
		}
	}
	return loads
}

// maxCode is the greatest code: dictionaries are numbered with positive ints.
const maxCode = 1<<31 - 1

// dictValues are the values of a .dict.
type dictValues struct {
	values [][]byte // of code i+1
	ends   []int    // bytes up to the end of each chunk
	counts []int    // values up to the end of each chunk
}

// parseDictValues reads chunks as long as there are whole ones. What it understood is given also with an error.
func parseDictValues(c *wire.Cursor) (d dictValues) {
	r := thrift.NewReader(c, thrift.Compact)
	for c.Err() == nil && c.Left() > 0 {
		v := parseDictionaryChunk(r, fmt.Sprintf("chunk[%d]", len(d.ends)))
		if c.Err() != nil {
			return d
		}
		d.values = append(d.values, v...)
		d.ends = append(d.ends, c.Pos())
		d.counts = append(d.counts, len(d.values))
	}
	return d
}

// whole is how many of the values can be trusted: those of the loads whose chunks end where .dictmeta says, with as many values as it
// says. Without loads all can.
func (d *dictValues) whole(loads []dictLoad) (n int, err error) {
	if loads == nil {
		return len(d.values), nil
	}
	chunk := 0
	for i, l := range loads {
		before := chunk
		for chunk < len(d.ends) && int64(d.ends[chunk]) <= l.end {
			chunk++
		}
		end, count := 0, 0
		if chunk > 0 {
			end, count = d.ends[chunk-1], d.counts[chunk-1]
		}
		if int64(end) != l.end || int64(count) != l.max || int64(chunk-before) != l.chunks {
			return n, fault.Corruptf(fault.Span{}, fmt.Sprintf("load[%d]", i), "%d values in %d chunks up to byte %d; the metadata says %d, %d and %d", count, chunk-before, end, l.max, l.chunks, l.end)
		}
		n = count
	}
	return n, nil
}

// dictionaries are those of one table. It is safe for concurrent use.
type dictionaries struct {
	tree store.Tree
	dir  string
	opts format.OpenOptions

	mu   sync.Mutex
	have map[string]*globalDictionary
}

// newDictionaries opens nothing yet. dir is the table's Metadata directory.
func newDictionaries(tree store.Tree, dir string, o format.OpenOptions) *dictionaries {
	return &dictionaries{tree: tree, dir: dir, opts: o, have: map[string]*globalDictionary{}}
}

// dictionariesAbove are those of the table in whose directory a data file lies, usually Fact/Part0/Segment_N of it; nil if no column
// needs one, or no Metadata directory is found.
func dictionariesAbove(ctx context.Context, tree store.Tree, dir string, cols []*column, o format.OpenOptions) (*dictionaries, error) {
	if !slices.ContainsFunc(cols, (*column).globalCodes) {
		return nil, nil
	}
	for range 5 {
		info, err := tree.Stat(ctx, path.Join(dir, "Metadata", "schema"))
		if err == nil && !info.Dir {
			return newDictionaries(tree, path.Join(dir, "Metadata"), o), nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) { // above the table anything may lie
			return nil, err
		}
		dir = path.Join(dir, "..")
	}
	return nil, nil
}

// globalCodes reports whether the pages of a column hold codes of a dictionary of the table.
func (c *column) globalCodes() bool {
	return c.dimension && !c.typ.complex() && c.encoders.has(encDictionary) && !c.encoders.has(encDirectDictionary)
}

// globalDictionary is the dictionary of a column.
type globalDictionary struct {
	col    *column // of the table: the type of the values
	tree   store.Tree
	limits format.Limits
	dict   fault.Span // of ID.dict: what the finished loads wrote
	size   int64      // of ID.dict
	loads  []dictLoad // nil: there is no .dictmeta, or it is damaged
	metaOf error      // what is wrong with .dictmeta

	sure atomic.Int64 // codes below this one stand for a value, as far as the dictionary was decoded; 0: not all do

	sorting sync.Mutex
	order   *dictOrder // made when it is asked for
}

// global is the dictionary of a column; nil if it has none. That it is not there is Corrupt: it costs the column, nothing else.
func (d *dictionaries) global(ctx context.Context, col *column) (*globalDictionary, error) {
	if d == nil {
		return nil, absent(col.id+dictExt, "column %s: its dictionary is in the table's Metadata directory, which is not above the file that was opened", col.name)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if g := d.have[col.id]; g != nil {
		return g, nil
	}
	g, err := openGlobal(ctx, d.tree, path.Join(d.dir, col.id+dictExt), col, d.opts)
	if err == nil {
		d.have[col.id] = g
	}
	return g, err
}

// absent is the error of a dictionary that is not there, which is another finding than a damaged one.
func absent(name, format string, args ...any) error {
	e := fault.Corruptf(fault.Span{Object: name}, "", format, args...)
	e.Cause = fs.ErrNotExist
	return e
}

func openGlobal(ctx context.Context, tree store.Tree, name string, col *column, o format.OpenOptions) (*globalDictionary, error) {
	g := &globalDictionary{col: col, tree: tree, limits: o.Limits.WithDefaults()}
	obj, err := openObject(ctx, tree, name, g.limits)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, absent(name, "the dictionary of column %s is not there", col.name)
	}
	if err != nil {
		return nil, err
	}
	g.size, g.dict = obj.at.Len, obj.at
	if g.loads, g.metaOf = readLoads(ctx, tree, name[:len(name)-len(dictExt)]+dictMetaExt, g.limits); g.metaOf != nil && !errors.Is(g.metaOf, fault.Corrupt) {
		return nil, g.metaOf
	}
	if n := len(g.loads); n > 0 {
		g.dict.Len = min(g.size, g.loads[n-1].end)
	}
	return g, nil
}

// readLoads reads a .dictmeta; nil if there is none. One that is damaged is Corrupt, with the loads before the damage.
func readLoads(ctx context.Context, tree store.Tree, name string, l format.Limits) ([]dictLoad, error) {
	obj, err := openObject(ctx, tree, name, l)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b, err := obj.read(ctx, 0, obj.at.Len, "")
	if err != nil {
		return nil, err
	}
	c := wire.NewCursor(b, obj.at, "")
	loads := parseDictLoads(c)
	if c.Err() != nil {
		return nil, c.Err() // all whole chunks count then
	}
	return loads, nil
}

// page is the dictionary as a page of the column's chunks.
func (g *globalDictionary) page() format.Page {
	return format.Page{Ordinal: -1, First: -1, Rows: -1, Entries: -1, Spans: []fault.Span{g.dict}, Own: g}
}

// values reads the values of a .dict's bytes, as far as they can be trusted. An error is damage behind the values that are given.
func (g *globalDictionary) values(b []byte) ([][]byte, error) {
	c := wire.NewCursor(b, g.dict, "")
	d := parseDictValues(c)
	n, err := d.whole(g.loads)
	if c.Err() != nil {
		err = c.Err()
	}
	return d.values[:n], fault.Locate(err, g.dict, true, "")
}

// decode makes the dictionary a vector in which code c is entry c. Entry 0 and 1 are null, and so are values that are none of the
// column's type. Damage costs only the codes from there on: a page that has one of them tells.
func (g *globalDictionary) decode(t *format.Task, dst *vec.Vector) error {
	values, err := g.values(t.Bytes[0])
	if err != nil && len(values) == 0 {
		return err
	}
	t.Raw = int64(len(t.Bytes[0]))
	n := max(len(values)+1, 2)
	switch dst.Type.ID() {
	case arrow.STRING, arrow.BINARY:
		g.sure.Store(int64(n))
		return fillStrings(dst, values, n)
	}
	at := dst.Extend(n)
	if dst.Width() > 0 {
		clear(dst.Data(at))
	} else {
		vec.SetBits(dst.Bits(), at, dst.Len(), false)
	}
	valid := dst.Validity()
	nulls := 0
	for i := range n {
		var v constant
		ok := false
		if i > 1 && string(values[i-1]) != nullText {
			v, err = parseValue(g.col, string(values[i-1]), time.UTC)
			ok = err == nil && !v.null
		}
		if !ok {
			clearOne(valid, at+i)
			nulls++
			continue
		}
		v.put(dst, at+i)
	}
	dst.AddNulls(nulls)
	if nulls <= nullCode+1 { // code 0, and the one of null
		g.sure.Store(int64(n))
	}
	return nil
}

// put sets entry i, which is of the constant's type.
func (v constant) put(dst *vec.Vector, i int) {
	switch dst.Type.ID() {
	case arrow.BOOL:
		vec.SetBits(dst.Bits(), i, i+1, v.i != 0)
	case arrow.INT8:
		vec.Fixed[int8](dst, i)[0] = int8(v.i)
	case arrow.INT16:
		vec.Fixed[int16](dst, i)[0] = int16(v.i)
	case arrow.INT32, arrow.DATE32:
		vec.Fixed[int32](dst, i)[0] = int32(v.i)
	case arrow.INT64, arrow.TIMESTAMP:
		vec.Fixed[int64](dst, i)[0] = v.i
	case arrow.FLOAT32:
		vec.Fixed[float32](dst, i)[0] = float32(v.f)
	case arrow.FLOAT64:
		vec.Fixed[float64](dst, i)[0] = v.f
	case arrow.DECIMAL128:
		vec.Fixed[decimal128.Num](dst, i)[0] = v.d
	}
}

func fillStrings(dst *vec.Vector, values [][]byte, n int) error {
	var total int64
	for _, v := range values {
		total += int64(len(v))
	}
	at := dst.Extend(n)
	offs := dst.Offsets(at)
	room, err := dst.Bytes(offs[0], total)
	if err != nil {
		return err
	}
	valid := dst.Validity()
	k, nulls := 0, 0
	for i := range n {
		if i <= nullCode || bytes.Equal(values[i-1], []byte(nullText)) {
			clearOne(valid, at+i)
			nulls++
		} else {
			k += copy(room[k:], values[i-1])
		}
		offs[i+1] = offs[0] + int32(k)
	}
	dst.AddNulls(nulls)
	return nil
}

// globalCodes decodes a page of codes: big-endian, as many bytes each as the dictionary needed.
func (c *content) globalCodes(dst *vec.Vector) error {
	dict := c.t.Dict
	if dict == nil {
		return fault.Bugf("carbon: codes without a dictionary")
	}
	codes, err := c.readCodes()
	if err != nil {
		return err
	}
	at := dst.Len()
	if codes, err = c.known(codes, dict); err != nil {
		return err
	}
	if dst.Type.ID() == arrow.STRING || dst.Type.ID() == arrow.BINARY {
		copy(dst.ExtendCodes(c.n, dict), codes)
	} else {
		dst.Extend(c.n)
		gather(dst, at, dict, codes)
	}
	nulls := 0
	for i, v := range codes {
		if v == nullCode {
			clearOne(dst.Validity(), at+i)
			nulls++
		}
	}
	dst.AddNulls(nulls)
	return nil
}

// readCodes spells the codes out in the order of the rows.
func (c *content) readCodes() ([]uint32, error) {
	if c.n <= 0 || len(c.raw)%c.n != 0 || len(c.raw)/c.n > 4 || len(c.raw) == 0 {
		if c.n == 0 && len(c.raw) == 0 {
			return nil, nil
		}
		return nil, fault.Rel(0, 0, "", "%d bytes of codes for %d entries", len(c.raw), c.n)
	}
	w := len(c.raw) / c.n
	c.siftCodes(w)
	out := c.t.Scratch.Uint32s(c.n)
	raw := c.inOrder(w)
	switch w {
	case 1:
		for i := range out {
			out[i] = uint32(raw[i])
		}
	case 2:
		for i := range out {
			out[i] = uint32(binary.BigEndian.Uint16(raw[2*i:]))
		}
	case 3:
		for i := range out {
			b := raw[3*i : 3*i+3]
			out[i] = uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
		}
	case 4:
		for i := range out {
			out[i] = binary.BigEndian.Uint32(raw[4*i:])
		}
	}
	return out, nil
}

// known checks that each code has a value, or is that of null.
func (c *content) known(codes []uint32, dict *vec.Vector) ([]uint32, error) {
	holes := dict.Nulls() > 2
	for i, v := range codes {
		if v == 0 || int64(v) >= int64(dict.Len()) {
			return nil, fault.Rel(0, 0, "", "entry %d: code %d is not in the dictionary, which has %d", i, v, dict.Len()-1)
		}
		if holes && v != nullCode && !dict.Valid(int(v)) {
			return nil, fault.Rel(0, 0, "", "entry %d: code %d stands for no value of type %s", i, v, dict.Type)
		}
	}
	return codes, nil
}

// gather copies values of a dictionary of a type of fixed width.
func gather(dst *vec.Vector, at int, dict *vec.Vector, codes []uint32) {
	switch dst.Width() {
	case 0:
		from, to := dict.Bits(), dst.Bits()
		for i, v := range codes {
			vec.SetBits(to, at+i, at+i+1, from[v>>3]>>(v&7)&1 != 0)
		}
	case 1:
		pick[uint8](dst, at, dict, codes)
	case 2:
		pick[uint16](dst, at, dict, codes)
	case 4:
		pick[uint32](dst, at, dict, codes)
	case 8:
		pick[uint64](dst, at, dict, codes)
	case 16:
		pick[decimal128.Num](dst, at, dict, codes)
	}
}

func pick[T any](dst *vec.Vector, at int, dict *vec.Vector, codes []uint32) {
	from, to := vec.Fixed[T](dict, 0), vec.Fixed[T](dst, at)
	for i, v := range codes {
		to[i] = from[v]
	}
}
