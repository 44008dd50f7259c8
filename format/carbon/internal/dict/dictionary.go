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

// A global dictionary has three files in the table's Metadata directory, named by the column's id:
//
//	ID.dict             ColumnDictionaryChunk{1: list<binary> values}, one after the other; each load appends. The
//	                    codes of the values count from 1, which is null ("@NU#LL$!")
//	ID.dictmeta         ColumnDictionaryChunkMeta, one a load: codes, bytes of ID.dict, number of chunks
//	ID_SIZE.sortindex   ColumnSortInfo: the codes in the order of their values, and the inverse; SIZE is that of
//	                    ID.dict. Those of earlier sizes stay for a while.
//
// All are sequences of structures in Thrift's compact protocol. A load of CarbonData writes .dict, then .dictmeta, then
// .sortindex, then the data: anything in .dict after the last load in .dictmeta belongs to a load that did not finish.
const (
	DictExt     = ".dict"
	DictMetaExt = ".dictmeta"
	SortExt     = ".sortindex"
)

// DictLoad is ColumnDictionaryChunkMeta: what one load appended.
type DictLoad struct {
	Min, Max   int64 // codes, both inclusive; Max is Min-1 if there are none
	Start, End int64 // offsets in the .dict
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

// ParseDictLoads reads a whole .dictmeta. Each load must begin where the previous one ends. The error is that of c; the
// loads before it are returned.
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
				"expected bytes from %d on, where the previous load ends, found %d to %d", last.End, d.Start, d.End)
		case d.Min != last.Max+1 || d.Max < d.Min-1 || d.Max > maxCode || d.Chunks < 0:
			c.Fail(at, c.Pos()-at, fmt.Sprintf("load[%d]", len(loads)),
				"expected codes from %d on, found %d to %d in %s", last.Max+1, d.Min, d.Max,
				fault.Count(d.Chunks, "chunk"))
		default:
			loads = append(loads, d)
		}
	}
	return loads
}

// maxCode is the largest code: codes are positive Java ints.
const maxCode = 1<<31 - 1

// DictValues are the values of a .dict.
type DictValues struct {
	Values [][]byte // Values[i] has code i+1
	Ends   []int    // offset of the end of each chunk
	counts []int    // number of values up to the end of each chunk
}

// ParseDictValues reads a whole .dict. The error is that of c; the chunks before it are returned.
func ParseDictValues(c *wire.Cursor) (d DictValues) {
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

// Trusted returns the number of values, from the first on, that can be trusted: those of loads whose numbers of chunks
// and values, and whose ends, agree with .dictmeta. If loads is nil, all values are trusted. The error is Corrupt and
// concerns the first load that differs.
func (d *DictValues) Trusted(loads []DictLoad) (n int, err error) {
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
				"expected %s, %s, end at byte %d; found %d, %d and %d", fault.Count(l.Max, "value"),
				fault.Count(l.Chunks, "chunk"), l.End, count,
				chunk-before, end)
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

// NewDictionaries returns the dictionaries without opening any. dir is the table's Metadata directory.
func NewDictionaries(tree store.Tree, dir string, o format.OpenOptions) *Dictionaries {
	return &Dictionaries{Tree: tree, Dir: dir, Opts: o, have: map[string]*GlobalDictionary{}}
}

// DictionariesAbove returns the dictionaries of the table to which a data file in dir belongs. The table is the nearest
// directory above dir that has Metadata/schema; dir is usually its Fact/Part0/Segment_N. It returns nil if no column
// needs a dictionary, or if there is no such directory.
func DictionariesAbove(ctx context.Context, tree store.Tree, dir string, cols []*schema.Column,
	o format.OpenOptions) (*Dictionaries, error) {
	if !slices.ContainsFunc(cols, schema.HasGlobalCodes) {
		return nil, nil
	}
	for range 5 {
		info, err := tree.Stat(ctx, path.Join(dir, "Metadata", "schema"))
		if err == nil && !info.Dir {
			return NewDictionaries(tree, path.Join(dir, "Metadata"), o), nil
		}
		// above the table the directories may be anything
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
	Dict   fault.Span // the part of ID.dict that finished loads wrote
	size   int64      // of ID.dict
	loads  []DictLoad // nil if .dictmeta is missing or damaged

	ValidBelow atomic.Int64 // all codes less than this are known to have a value; 0: not decoded yet, or some lack one

	sorting sync.Mutex
	Order   *dictOrder // nil until ordered computes it
}

// Global is the dictionary of a column. A missing dictionary is Corrupt, with fs.ErrNotExist as the cause: only the
// column is lost.
func (d *Dictionaries) Global(ctx context.Context, col *schema.Column) (*GlobalDictionary, error) {
	if d == nil {
		return nil, absent(col.ID+DictExt, "column %s: its dictionary is in the table's Metadata directory, "+
			"which is not above the file that was opened", col.Name)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if g := d.have[col.ID]; g != nil {
		return g, nil
	}
	g, err := openGlobal(ctx, d.Tree, path.Join(d.Dir, col.ID+DictExt), col, d.Opts)
	if err == nil {
		d.have[col.ID] = g
	}
	return g, err
}

// absent returns the error for a missing dictionary, whose cause distinguishes it from damage.
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
	// a damaged .dictmeta is not an error here: without loads all complete chunks count
	g.loads, err = ReadLoads(ctx, tree, name[:len(name)-len(DictExt)]+DictMetaExt, g.Limits)
	if err != nil && !errors.Is(err, fault.Corrupt) {
		return nil, err
	}
	if n := len(g.loads); n > 0 {
		g.Dict.Len = min(g.size, g.loads[n-1].End)
	}
	return g, nil
}

// ReadLoads reads a .dictmeta; nil if there is none, or if it is damaged, which is Corrupt.
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
		return nil, c.Err()
	}
	return loads, nil
}

// Page is the dictionary as a page of the column's chunks.
func (g *GlobalDictionary) Page() format.Page {
	return format.Page{Ordinal: -1, First: -1, Rows: -1, Entries: -1, Spans: []fault.Span{g.Dict}, Own: g}
}

// values parses b, the bytes of g.Dict, and returns the values that can be trusted. The error is about the damage after
// these.
func (g *GlobalDictionary) values(b []byte) ([][]byte, error) {
	c := wire.NewCursor(b, g.Dict, "").Within(g.Limits.Memory())
	d := ParseDictValues(c)
	n, err := d.Trusted(g.loads)
	if c.Err() != nil {
		err = c.Err()
	}
	return d.Values[:n], fault.Locate(err, g.Dict, true, "")
}

// Decode appends the dictionary to dst: code c is entry c. Entries 0 and 1 are null, and so are values that are not of
// the column's type. In a damaged dictionary the entries before the damage are usable, and pages with later codes fail.
func (g *GlobalDictionary) Decode(t *format.Task, dst *vec.Vector) error {
	values, err := g.values(t.Bytes[0])
	if err != nil && (len(values) == 0 || fault.OverBudget(err)) {
		return err
	}
	t.Raw = int64(len(t.Bytes[0]))
	n := max(len(values)+1, 2)
	switch dst.Type.ID() {
	case arrow.STRING, arrow.BINARY:
		g.ValidBelow.Store(int64(n))
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
			schema.SetNull(valid, at+i)
			nulls++
			continue
		}
		v.Set(dst, at+i)
	}
	dst.AddNulls(nulls)
	if nulls <= schema.NullCode+1 { // only codes 0 and 1
		g.ValidBelow.Store(int64(n))
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
			schema.SetNull(valid, at+i)
			nulls++
		} else {
			k += copy(room[k:], values[i-1])
		}
		offs[i+1] = offs[0] + int32(k)
	}
	dst.AddNulls(nulls)
	return nil
}

// Gather sets the entries of dst from at on to the values of codes in dict, whose type has a fixed width. All codes
// must be in dict.
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
