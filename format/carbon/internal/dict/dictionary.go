package dict

import (
	"bytes"
	"context"
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
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/internal/thrift"
	"stoa/store"
	"stoa/vec"
	"stoa/wire"
)

// A global dictionary is kept apart from the data, in three files of the table's Metadata directory, named by
// the column's id:
//
//	ID.dict             ColumnDictionaryChunk{1: list<binary> values}, one after the other; each load appends. The
//	                    values count from code 1, which is null ("@NU#LL$!")
//	ID.dictmeta         ColumnDictionaryChunkMeta, one a load: which codes, which bytes of ID.dict, how many chunks
//	ID_SIZE.sortindex   ColumnSortInfo: the codes in the order of their values, and its inverse; SIZE is that of
//	                    ID.dict. Old ones stay.
//
// All are Thrift's compact protocol without anything between the structures. A load writes .dict, then
// .dictmeta, then .sortindex, then the data: what is in .dict after the last load that .dictmeta names belongs
// to a load that did not finish.
const (
	DictExt     = ".dict"
	DictMetaExt = ".dictmeta"
	SortExt     = ".sortindex"
)

// DictLoad is ColumnDictionaryChunkMeta: what one load appended.
type DictLoad struct {
	Min, Max   int64 // codes
	Start, End int64 // bytes of the .dict
	Chunks     int64
}

func parseDictLoad(r *thrift.Reader, name string) (d DictLoad) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			d.Min = int64(r.I32("min_surrogate_key"))
		case 2:
			d.Max = int64(r.I32("max_surrogate_key"))
		case 3:
			d.Start = r.I64("start_offset")
		case 4:
			d.End = r.I64("end_offset")
		case 5:
			d.Chunks = int64(r.I32("chunk_count"))
		}
	}
	return d
}

// ParseDictLoads reads a whole .dictmeta. What it understood is given also with an error.
func ParseDictLoads(c *wire.Cursor) (loads []DictLoad) {
	r := thrift.NewReader(c, thrift.Compact)
	for c.Err() == nil && c.Left() > 0 {
		at := c.Pos()
		d := parseDictLoad(r, fmt.Sprintf("load[%d]", len(loads)))
		if c.Err() != nil {
			break
		}
		var last DictLoad
		if n := len(loads); n > 0 {
			last = loads[n-1]
		}
		switch {
		case d.Start != last.End || d.End < d.Start:
			c.Fail(at, c.Pos()-at, fmt.Sprintf("load[%d]", len(loads)),
				"bytes %d to %d, the load before ends at %d", d.Start, d.End, last.End)
		case d.Min != last.Max+1 || d.Max < d.Min-1 || d.Max > maxCode || d.Chunks < 0:
			c.Fail(at, c.Pos()-at, fmt.Sprintf("load[%d]", len(loads)),
				"codes %d to %d in %d chunks, the load before ends with %d", d.Min, d.Max, d.Chunks, last.Max)
		default:
			loads = append(loads, d)
		}
	}
	return loads
}

// maxCode is the largest code: dictionaries are numbered with positive ints.
const maxCode = 1<<31 - 1

// dictValues are the values of a .dict.
type dictValues struct {
	Values [][]byte // of code i+1
	Ends   []int    // bytes up to the end of each chunk
	counts []int    // values up to the end of each chunk
}

// ParseDictValues reads chunks as long as there are whole ones. What it understood is given also with an error.
func ParseDictValues(c *wire.Cursor) (d dictValues) {
	r := thrift.NewReader(c, thrift.Compact)
	for c.Err() == nil && c.Left() > 0 {
		v := layout.ParseDictionaryChunk(r, fmt.Sprintf("chunk[%d]", len(d.Ends)))
		if c.Err() != nil {
			return d
		}
		d.Values = append(d.Values, v...)
		d.Ends = append(d.Ends, c.Pos())
		d.counts = append(d.counts, len(d.Values))
	}
	return d
}

// Whole is how many of the values can be trusted: those of the loads whose chunks end where .dictmeta says,
// with as many values as it says. Without loads all can.
func (d *dictValues) Whole(loads []DictLoad) (n int, err error) {
	if loads == nil {
		return len(d.Values), nil
	}
	chunk := 0
	for i, l := range loads {
		before := chunk
		for chunk < len(d.Ends) && int64(d.Ends[chunk]) <= l.End {
			chunk++
		}
		end, count := 0, 0
		if chunk > 0 {
			end, count = d.Ends[chunk-1], d.counts[chunk-1]
		}
		if int64(end) != l.End || int64(count) != l.Max || int64(chunk-before) != l.Chunks {
			return n, fault.Corruptf(fault.Span{}, fmt.Sprintf("load[%d]", i),
				"%d values in %d chunks up to byte %d; the metadata says %d, %d and %d", count, chunk-before, end,
				l.Max, l.Chunks, l.End)
		}
		n = count
	}
	return n, nil
}

// Dictionaries are those of one table. It is safe for concurrent use.
type Dictionaries struct {
	Tree store.Tree
	Dir  string
	Opts format.OpenOptions

	mu   sync.Mutex
	have map[string]*GlobalDictionary
}

// NewDictionaries opens nothing yet. dir is the table's Metadata directory.
func NewDictionaries(tree store.Tree, dir string, o format.OpenOptions) *Dictionaries {
	return &Dictionaries{Tree: tree, Dir: dir, Opts: o, have: map[string]*GlobalDictionary{}}
}

// DictionariesAbove are those of the table in whose directory a data file lies, usually Fact/Part0/Segment_N of
// it; nil if no column needs one, or no Metadata directory is found.
func DictionariesAbove(ctx context.Context, tree store.Tree, dir string, cols []*schema.Column,
	o format.OpenOptions) (*Dictionaries, error) {
	if !slices.ContainsFunc(cols, schema.GlobalCodes) {
		return nil, nil
	}
	for range 5 {
		info, err := tree.Stat(ctx, path.Join(dir, "Metadata", "schema"))
		if err == nil && !info.Dir {
			return NewDictionaries(tree, path.Join(dir, "Metadata"), o), nil
		}
		// above the table anything may lie
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
		dir = path.Join(dir, "..")
	}
	return nil, nil
}

// GlobalDictionary is the dictionary of a column.
type GlobalDictionary struct {
	Col    *schema.Column // of the table: the type of the values
	Tree   store.Tree
	Limits format.Limits
	Dict   fault.Span // of ID.dict: what the finished loads wrote
	size   int64      // of ID.dict
	loads  []DictLoad // nil: there is no .dictmeta, or it is damaged
	metaOf error      // what is wrong with .dictmeta

	Sure atomic.Int64 // codes below this one stand for a value, as far as the dictionary was decoded; 0: not all do

	sorting sync.Mutex
	Order   *dictOrder // made when it is asked for
}

// Global is the dictionary of a column; nil if it has none. That it is not there is Corrupt: it costs the
// column, nothing else.
func (d *Dictionaries) Global(ctx context.Context, col *schema.Column) (*GlobalDictionary, error) {
	if d == nil {
		return nil, absent(col.Id+DictExt, "column %s: its dictionary is in the table's Metadata directory, "+
			"which is not above the file that was opened", col.Name)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if g := d.have[col.Id]; g != nil {
		return g, nil
	}
	g, err := openGlobal(ctx, d.Tree, path.Join(d.Dir, col.Id+DictExt), col, d.Opts)
	if err == nil {
		d.have[col.Id] = g
	}
	return g, err
}

// absent is the error of a dictionary that is not there, which is another finding than a damaged one.
func absent(name, format string, args ...any) error {
	e := fault.Corruptf(fault.Span{Object: name}, "", format, args...)
	e.Cause = fs.ErrNotExist
	return e
}

func openGlobal(ctx context.Context, tree store.Tree, name string, col *schema.Column,
	o format.OpenOptions) (*GlobalDictionary, error) {
	g := &GlobalDictionary{Col: col, Tree: tree, Limits: o.Limits.WithDefaults()}
	obj, err := layout.OpenObject(ctx, tree, name, g.Limits)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, absent(name, "the dictionary of column %s is not there", col.Name)
	}
	if err != nil {
		return nil, err
	}
	g.size, g.Dict = obj.At.Len, obj.At
	if g.loads, g.metaOf = ReadLoads(ctx, tree, name[:len(name)-len(DictExt)]+DictMetaExt,
		g.Limits); g.metaOf != nil && !errors.Is(g.metaOf, fault.Corrupt) {
		return nil, g.metaOf
	}
	if n := len(g.loads); n > 0 {
		g.Dict.Len = min(g.size, g.loads[n-1].End)
	}
	return g, nil
}

// ReadLoads reads a .dictmeta; nil if there is none. One that is damaged is Corrupt, with the loads before the damage.
func ReadLoads(ctx context.Context, tree store.Tree, name string, l format.Limits) ([]DictLoad, error) {
	obj, err := layout.OpenObject(ctx, tree, name, l)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b, err := obj.Read(ctx, 0, obj.At.Len, "")
	if err != nil {
		return nil, err
	}
	c := obj.Cursor(b, obj.At, "")
	loads := ParseDictLoads(c)
	if c.Err() != nil {
		return nil, c.Err() // all whole chunks count then
	}
	return loads, nil
}

// Page is the dictionary as a page of the column's chunks.
func (g *GlobalDictionary) Page() format.Page {
	return format.Page{Ordinal: -1, First: -1, Rows: -1, Entries: -1, Spans: []fault.Span{g.Dict}, Own: g}
}

// values reads the values of a .dict's bytes, as far as they can be trusted. An error is damage after the
// values that are given.
func (g *GlobalDictionary) values(b []byte) ([][]byte, error) {
	c := wire.NewCursor(b, g.Dict, "").Within(g.Limits.Memory())
	d := ParseDictValues(c)
	n, err := d.Whole(g.loads)
	if c.Err() != nil {
		err = c.Err()
	}
	return d.Values[:n], fault.Locate(err, g.Dict, true, "")
}

// Decode makes the dictionary a vector in which code c is entry c. Entry 0 and 1 are null, and so are values
// that are none of the column's type. Damage costs only the codes from there on: a page that has one of them
// says.
func (g *GlobalDictionary) Decode(t *format.Task, dst *vec.Vector) error {
	values, err := g.values(t.Bytes[0])
	if err != nil && (len(values) == 0 || fault.OverBudget(err)) {
		return err
	}
	t.Raw = int64(len(t.Bytes[0]))
	n := max(len(values)+1, 2)
	switch dst.Type.ID() {
	case arrow.STRING, arrow.BINARY:
		g.Sure.Store(int64(n))
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
		var v schema.Constant
		ok := false
		if i > 1 && string(values[i-1]) != schema.NullText {
			v, err = schema.ParseValue(g.Col, string(values[i-1]), time.UTC)
			ok = err == nil && !v.Null
		}
		if !ok {
			schema.ClearOne(valid, at+i)
			nulls++
			continue
		}
		v.Put(dst, at+i)
	}
	dst.AddNulls(nulls)
	if nulls <= schema.NullCode+1 { // code 0, and the one of null
		g.Sure.Store(int64(n))
	}
	return nil
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
		if i <= schema.NullCode || bytes.Equal(values[i-1], []byte(schema.NullText)) {
			schema.ClearOne(valid, at+i)
			nulls++
		} else {
			k += copy(room[k:], values[i-1])
		}
		offs[i+1] = offs[0] + int32(k)
	}
	dst.AddNulls(nulls)
	return nil
}

// Gather copies values of a dictionary of a type of fixed width.
func Gather(dst *vec.Vector, at int, dict *vec.Vector, codes []uint32) {
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
