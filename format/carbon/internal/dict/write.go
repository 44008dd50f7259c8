package dict

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/status"
	"stoa/internal/sorted"
	"stoa/internal/thrift"
	"stoa/store"
	"stoa/wire"
)

// DictFile is the global dictionary of a column while a load looks up and adds values. It holds the dictionary's lock.
type DictFile struct {
	*schema.Column
	base   string // Metadata/ID, without .dict
	Values [][]byte
	codes  map[string]uint32
	saved  int        // how many of the values are in the file
	loads  []DictLoad // of .dictmeta
	size   int64      // bytes of .dict up to the end of the last load
	Unlock func()
}

// dictChunk is the largest number of values per chunk: the default of carbon.dictionary.chunk.size.
const dictChunk = 10_000

// OpenDict locks and reads the dictionary of a column of the table in dir; a missing dictionary is empty. The caller
// must call Unlock. Errors are those of status.Lock, and Corrupt for a damaged dictionary.
func OpenDict(ctx context.Context, dir string, c *schema.Column) (d *DictFile, err error) {
	d = &DictFile{Column: c, base: filepath.Join(dir, "Metadata", c.ID), codes: map[string]uint32{}}
	if d.Unlock, err = status.Lock(ctx, dir, c.ID+".lock", status.LockWait); err != nil {
		return nil, err
	}
	if err = d.read(ctx); err != nil {
		d.Unlock()
		return nil, err
	}
	return d, nil
}

// read reads .dict and .dictmeta. Chunks after the last load in .dictmeta do not count. Without .dictmeta, which is
// written last, all complete chunks count, since data may have their codes. Damage is an error, because readers would
// assign other codes to values appended after it.
func (d *DictFile) read(ctx context.Context) error {
	limits := format.Limits{}.WithDefaults()
	name := filepath.ToSlash(d.base) + DictExt
	obj, err := layout.OpenObject(ctx, store.Local{}, name, limits)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if d.loads, err = ReadLoads(ctx, store.Local{}, filepath.ToSlash(d.base)+DictMetaExt, limits); err != nil {
		return err
	}
	n := obj.At.Len
	if len(d.loads) > 0 {
		n = min(n, d.loads[len(d.loads)-1].End)
	}
	b, err := obj.Read(ctx, 0, n, "")
	if err != nil {
		return err
	}
	c := wire.NewCursor(b, obj.At, "")
	got := ParseDictValues(c)
	whole, err := got.Trusted(d.loads)
	if err == nil && len(d.loads) > 0 {
		err = c.Err()
	}
	if err != nil {
		return fault.Locate(err, obj.At, true, d.Name)
	}
	if d.Values = got.Values[:whole]; whole > 0 {
		d.size = int64(got.Ends[len(got.Ends)-1])
	}
	if d.loads == nil && whole > 0 { // an unfinished load, or a lost .dictmeta
		d.loads = []DictLoad{{Min: 1, Max: int64(whole), End: d.size, Chunks: int64(len(got.Ends))}}
	}
	for i, v := range d.Values {
		if _, ok := d.codes[string(v)]; !ok { // of a value that occurs twice the first code counts, as in readers
			d.codes[string(v)] = uint32(i + 1)
		}
	}
	d.saved = whole
	return nil
}

// Code is the code of a value; 0 if it has none.
func (d *DictFile) Code(v string) uint32 { return d.codes[v] }

// Add returns the code of a value, which is the next one if the value has none yet. The error is Limit if no code is
// left.
func (d *DictFile) Add(v string) (uint32, error) {
	if len(d.Values) == 0 {
		d.Values = append(d.Values, []byte(schema.NullText))
		d.codes[schema.NullText] = schema.NullCode
	}
	if c, ok := d.codes[v]; ok {
		return c, nil
	}
	if int64(len(d.Values)) >= maxCode {
		return 0, fault.Limitf(fault.Span{}, d.Name, "all %d codes of the dictionary are in use", int64(maxCode))
	}
	d.Values = append(d.Values, []byte(v))
	d.codes[v] = uint32(len(d.Values))
	return uint32(len(d.Values)), nil
}

// AddAll adds values in the sort order of CarbonData's loader.
func (d *DictFile) AddAll(values map[string]bool) error {
	delete(values, schema.NullText)
	if _, err := d.Add(schema.NullText); err != nil {
		return err
	}
	list := layout.SortedKeys(values)
	sorted.By(list, JavaCompare)
	for _, v := range list {
		if _, err := d.Add(v); err != nil {
			return err
		}
	}
	return nil
}

// JavaCompare compares strings as Java does, by UTF-16 code units: characters from U+10000 on come before those from
// U+E000 to U+FFFF.
func JavaCompare(a, b string) int {
	place := func(r rune) rune {
		if r >= 0xe000 && r < 0x10000 {
			return r + 0x200000
		}
		return r
	}
	return slices.CompareFunc([]rune(a), []rune(b), func(x, y rune) int { return cmp.Compare(place(x), place(y)) })
}

// Save appends the new values to .dict, writes a new .sortindex of all, and replaces .dictmeta, which says how much of
// .dict counts, last and by one rename, so readers see the dictionary either as it was or with all new values.
func (d *DictFile) Save() error {
	if len(d.Values) == d.saved {
		return nil
	}
	size, chunks, err := d.append()
	if err != nil {
		return err
	}
	order := layout.ThriftBytes(d.sortInfo().put)
	if err := status.ReplaceFile(d.base+"_"+strconv.FormatInt(size, 10)+SortExt, order); err != nil {
		return err
	}
	last := DictLoad{Min: int64(d.saved) + 1, Max: int64(len(d.Values)), Start: d.size, End: size,
		Chunks: int64(chunks)}
	var meta []byte
	for _, l := range append(d.loads, last) {
		meta = append(meta, layout.ThriftBytes(l.put)...)
	}
	if err := status.ReplaceFile(d.base+DictMetaExt, meta); err != nil {
		return err
	}
	d.loads, d.saved, d.size = append(d.loads, last), len(d.Values), size
	return d.removeSortIndexes()
}

// append writes the new values after those that count, overwriting what an unfinished load left there. It returns the
// new size and the number of chunks.
func (d *DictFile) append() (size int64, chunks int, err error) {
	f, err := os.OpenFile(d.base+DictExt, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Truncate(d.size); err != nil {
		return 0, 0, err
	}
	size = d.size
	for part := range slices.Chunk(d.Values[d.saved:], dictChunk) {
		b := layout.ThriftBytes(func(w *thrift.Writer) {
			w.Struct(thrift.Item)
			layout.PutBinaries(w, 1, part)
			w.End()
		})
		if _, err := f.WriteAt(b, size); err != nil {
			return 0, 0, err
		}
		size += int64(len(b))
		chunks++
	}
	return size, chunks, errors.Join(f.Sync(), store.SyncDir(filepath.Dir(d.base)))
}

// put writes ColumnDictionaryChunkMeta.
func (l *DictLoad) put(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.I32(1, int32(l.Min))
	w.I32(2, int32(l.Max))
	w.I64(3, l.Start)
	w.I64(4, l.End)
	w.I32(5, int32(l.Chunks))
	w.End()
}

// put writes ColumnSortInfo.
func (s *SortInfo) put(w *thrift.Writer) {
	w.Struct(thrift.Item)
	layout.PutI32s(w, 1, s.Codes)
	layout.PutI32s(w, 2, s.Ranks)
	w.End()
}

// sortInfo sorts the codes by their values: strings as JavaCompare does, including null; other types by value, with
// null and values that are not of the type last.
func (d *DictFile) sortInfo() *SortInfo {
	s := &SortInfo{Codes: make([]int32, len(d.Values)), Ranks: make([]int32, len(d.Values))}
	for i := range s.Codes {
		s.Codes[i] = int32(i + 1)
	}
	order := func(a, b int32) int { return JavaCompare(string(d.Values[a-1]), string(d.Values[b-1])) }
	if d.Type != layout.TypeString {
		o := NewDictOrder(d.Column, d.Values)
		order = func(a, b int32) int {
			x, y := o.values[a], o.values[b]
			if x.Null || y.Null {
				return cmp.Compare(bit(x.Null), bit(y.Null))
			}
			return compare(d.Column, x, y)
		}
	}
	sortCodes(s.Codes, order)
	for i, c := range s.Codes {
		s.Ranks[c-1] = int32(i + 1)
	}
	return s
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// keepSortIndexes is the time for which superseded sort indexes are kept for running queries: the default of
// max.query.execution.time.
const keepSortIndexes = time.Hour

// removeSortIndexes removes the sort indexes of earlier sizes that are older than keepSortIndexes.
func (d *DictFile) removeSortIndexes() error {
	dir, id := filepath.Split(d.base)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	now := fmt.Sprintf("%s_%d%s", id, d.size, SortExt)
	for _, e := range entries {
		n := e.Name()
		if !strings.HasPrefix(n, id+"_") || !strings.HasSuffix(n, SortExt) || n == now {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > keepSortIndexes {
			if err := os.Remove(filepath.Join(dir, n)); err != nil {
				return err
			}
		}
	}
	return nil
}
