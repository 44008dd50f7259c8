package carbon

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
	"stoa/internal/thrift"
	"stoa/store"
	"stoa/wire"
)

// dictFile is the global dictionary of a column while a load looks up and adds values. It holds the dictionary's lock.
type dictFile struct {
	*column
	base   string // Metadata/ID, without .dict
	values [][]byte
	codes  map[string]uint32
	old    int        // how many of the values are in the file
	loads  []dictLoad // of .dictmeta
	size   int64      // bytes of .dict that count
	unlock func()
}

// Values of a load are written in chunks of at most so many: carbon.dictionary.chunk.size.
const dictChunk = 10_000

// openDict locks and reads the dictionary of a column of the table in dir. One that is not there yet is empty.
func openDict(ctx context.Context, dir string, c *column) (d *dictFile, err error) {
	d = &dictFile{column: c, base: filepath.Join(dir, "Metadata", c.id), codes: map[string]uint32{}}
	if d.unlock, err = lock(ctx, dir, c.id+".lock", lockWait); err != nil {
		return nil, err
	}
	if err = d.read(ctx); err != nil {
		d.unlock()
		return nil, err
	}
	return d, nil
}

// read reads .dict and .dictmeta. What stands behind the last load that .dictmeta names does not count; without any .dictmeta, which
// is written last, all whole chunks do: they can be unused, but data may have their codes. What is damaged is refused: new
// values behind it would get other codes than readers give them.
func (d *dictFile) read(ctx context.Context) error {
	limits := format.Limits{}.WithDefaults()
	name := filepath.ToSlash(d.base) + dictExt
	obj, err := openObject(ctx, store.Local{}, name, limits)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if d.loads, err = readLoads(ctx, store.Local{}, filepath.ToSlash(d.base)+dictMetaExt, limits); err != nil {
		return err
	}
	n := obj.at.Len
	if len(d.loads) > 0 {
		n = min(n, d.loads[len(d.loads)-1].end)
	}
	b, err := obj.read(ctx, 0, n, "")
	if err != nil {
		return err
	}
	c := wire.NewCursor(b, obj.at, "")
	got := parseDictValues(c)
	whole, err := got.whole(d.loads)
	if err == nil && len(d.loads) > 0 {
		err = c.Err()
	}
	if err != nil {
		return fault.Locate(err, obj.at, true, d.name)
	}
	if d.values = got.values[:whole]; whole > 0 {
		d.size = int64(got.ends[len(got.ends)-1])
	}
	if d.loads == nil && whole > 0 { // what a load left behind, or whose .dictmeta was lost
		d.loads = []dictLoad{{min: 1, max: int64(whole), end: d.size, chunks: int64(len(got.ends))}}
	}
	for i, v := range d.values {
		if _, ok := d.codes[string(v)]; !ok { // of values that are there twice the first one, as readers of the text do
			d.codes[string(v)] = uint32(i + 1)
		}
	}
	d.old = whole
	return nil
}

// code is the code of a value; 0 if it has none.
func (d *dictFile) code(v string) uint32 { return d.codes[v] }

// add gives a value the next code.
func (d *dictFile) add(v string) (uint32, error) {
	if len(d.values) == 0 {
		d.values = append(d.values, []byte(nullText))
		d.codes[nullText] = nullCode
	}
	if c, ok := d.codes[v]; ok {
		return c, nil
	}
	if int64(len(d.values)) >= maxCode {
		return 0, fault.Limitf(fault.Span{}, d.name, "its dictionary has all of its %d codes", int64(maxCode))
	}
	d.values = append(d.values, []byte(v))
	d.codes[v] = uint32(len(d.values))
	return uint32(len(d.values)), nil
}

// addAll adds values in the order in which the real loader sorts them.
func (d *dictFile) addAll(values map[string]bool) error {
	delete(values, nullText)
	if _, err := d.add(nullText); err != nil {
		return err
	}
	list := sorted(values)
	slices.SortFunc(list, javaCompare)
	for _, v := range list {
		if _, err := d.add(v); err != nil {
			return err
		}
	}
	return nil
}

// javaCompare compares texts as Java does, by units of UTF-16: characters beyond the first 65,536 come before those from U+E000 on.
func javaCompare(a, b string) int {
	place := func(r rune) rune {
		if r >= 0xe000 && r < 0x10000 {
			return r + 0x200000
		}
		return r
	}
	return slices.CompareFunc([]rune(a), []rune(b), func(x, y rune) int { return cmp.Compare(place(x), place(y)) })
}

// save writes the values that are new: .dict grows; .sortindex is made anew for all; .dictmeta, which tells how much of .dict counts,
// is replaced last, at once. Whoever reads sees the dictionary as it was, or as it is.
func (d *dictFile) save() error {
	if len(d.values) == d.old {
		return nil
	}
	size, chunks, err := d.append()
	if err != nil {
		return err
	}
	order := thriftBytes(d.sortInfo().put)
	if err := replaceFile(d.base+"_"+strconv.FormatInt(size, 10)+sortExt, order); err != nil {
		return err
	}
	last := dictLoad{min: int64(d.old) + 1, max: int64(len(d.values)), start: d.size, end: size, chunks: int64(chunks)}
	var meta []byte
	for _, l := range append(d.loads, last) {
		meta = append(meta, thriftBytes(l.put)...)
	}
	if err := replaceFile(d.base+dictMetaExt, meta); err != nil {
		return err
	}
	d.loads, d.old, d.size = append(d.loads, last), len(d.values), size
	return d.sweep()
}

// append puts the new values behind those that count, in place of what an unfinished load left there.
func (d *dictFile) append() (size int64, chunks int, err error) {
	f, err := os.OpenFile(d.base+dictExt, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Truncate(d.size); err != nil {
		return 0, 0, err
	}
	size = d.size
	for part := range slices.Chunk(d.values[d.old:], dictChunk) {
		b := thriftBytes(func(w *thrift.Writer) {
			w.Struct(thrift.Item)
			putBinaries(w, 1, part)
			w.End()
		})
		if _, err := f.WriteAt(b, size); err != nil {
			return 0, 0, err
		}
		size += int64(len(b))
		chunks++
	}
	return size, chunks, errors.Join(f.Sync(), syncDir(filepath.Dir(d.base)))
}

// put writes ColumnDictionaryChunkMeta.
func (l *dictLoad) put(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.I32(1, int32(l.min))
	w.I32(2, int32(l.max))
	w.I64(3, l.start)
	w.I64(4, l.end)
	w.I32(5, int32(l.chunks))
	w.End()
}

// put writes ColumnSortInfo.
func (s *sortInfo) put(w *thrift.Writer) {
	w.Struct(thrift.Item)
	putI32s(w, 1, s.codes)
	putI32s(w, 2, s.ranks)
	w.End()
}

// sortInfo orders the codes by their values: texts as texts, null among them; numbers by their size, null and what is no number last.
func (d *dictFile) sortInfo() *sortInfo {
	s := &sortInfo{codes: make([]int32, len(d.values)), ranks: make([]int32, len(d.values))}
	for i := range s.codes {
		s.codes[i] = int32(i + 1)
	}
	order := func(a, b int32) int { return javaCompare(string(d.values[a-1]), string(d.values[b-1])) }
	if d.typ != typeString {
		o := newDictOrder(d.column, d.values)
		order = func(a, b int32) int {
			x, y := o.values[a], o.values[b]
			if x.null || y.null {
				return cmp.Compare(bit(x.null), bit(y.null))
			}
			return compare(d.column, x, y)
		}
	}
	slices.SortStableFunc(s.codes, order)
	for i, c := range s.codes {
		s.ranks[c-1] = int32(i + 1)
	}
	return s
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// oldSortIndexes are kept for queries that read them: max.query.execution.time.
const oldSortIndexes = time.Hour

// sweep removes sort indexes of earlier sizes that nobody can be reading any more.
func (d *dictFile) sweep() error {
	dir, id := filepath.Split(d.base)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	now := fmt.Sprintf("%s_%d%s", id, d.size, sortExt)
	for _, e := range entries {
		n := e.Name()
		if !strings.HasPrefix(n, id+"_") || !strings.HasSuffix(n, sortExt) || n == now {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > oldSortIndexes {
			if err := os.Remove(filepath.Join(dir, n)); err != nil {
				return err
			}
		}
	}
	return nil
}
