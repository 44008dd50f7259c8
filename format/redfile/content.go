package redfile

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"stoa/fault"
	"stoa/format"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
	"strings"
	"sync"
)

// content is an open RedFile below its schema: the metadata, and where chunks and their metadata are.
type content struct {
	tree     store.Tree
	src      store.Source
	at       fault.Span // all of it; offsets in the metadata count from its beginning
	opts     readOptions
	limits   format.Limits
	noVerify bool

	meta    fileMeta
	metaAt  fault.Span
	literal bool // the number at the end is the offset from the end, as the document has it, and not the length

	gathered bool               // row groups were put together from parts, without the metadata that says where each is
	lost     map[chunkKey]error // of a recovered file: chunks whose metadata was not found

	mu      sync.Mutex
	metas   map[chunkKey]*columnMeta
	objects map[string]store.Source // of chunks in other files
	inFile  map[string][]int        // row groups by the files that their chunks are in, see groupsIn
	starts  map[string][]int64      // by such files: where structures begin, see structureBehind
	strange map[string]error        // such files that are not what the metadata takes them for
}

type chunkKey struct{ group, col int }

func newContent(tree store.Tree, src store.Source, at fault.Span, o format.OpenOptions, opts readOptions) *content {
	return &content{tree: tree, src: src, at: at, opts: opts, limits: o.Limits.WithDefaults(), noVerify: o.NoVerify,
		metas: map[chunkKey]*columnMeta{}, objects: map[string]store.Source{}, strange: map[string]error{},
		starts: map[string][]int64{}}
}

// open reads the metadata of the file.
func (f *content) open(ctx context.Context, trace func(region.Node)) error {
	if f.at.Len < minFile {
		return fault.Corruptf(f.at, "", "%d bytes are too few for a RedFile", f.at.Len)
	}
	if err := f.readMeta(ctx, trace); err != nil {
		return err
	}
	head := make([]byte, min(f.at.Len, 128))
	if err := format.ReadFull(ctx, f.src, f.at.Sub(0, int64(len(head))), "magic", head); err != nil {
		return err
	}
	if string(head[:magicLen]) != magic {
		return fault.Corruptf(f.at.Sub(0, magicLen), "magic", "%q at the beginning, not %q", head[:magicLen], magic)
	}
	return f.otherFile(ctx, head[magicLen:])
}

// readMeta finds and reads the metadata at the end: N bytes, N as u32 little-endian, magic. The document calls
// the number an "offset from end of file"; every program wrote the length. What fits is taken, the length
// first.
func (f *content) readMeta(ctx context.Context, trace func(region.Node)) error {
	var end [tailLen]byte
	tail := f.at.Sub(f.at.Len-tailLen, tailLen)
	if err := format.ReadFull(ctx, f.src, tail, "footer", end[:]); err != nil {
		return err
	}
	if string(end[4:]) != magic {
		return fault.Corruptf(tail.Sub(4, 4), "magic",
			"%q at the end, not %q: the file is cut, or its end is overwritten", end[4:], magic)
	}
	n := int64(binary.LittleEndian.Uint32(end[:]))
	first := f.tryMeta(ctx, f.at.Len-tailLen-n, n, nil)
	if first != nil {
		m, at := f.meta, f.metaAt
		if f.tryMeta(ctx, f.at.Len-n, n-tailLen, nil) == nil {
			f.literal, first = true, nil
		} else {
			f.meta, f.metaAt = m, at
		}
	}
	switch { // once more to tell its parts, of that which is taken only: they have their bytes for themselves
	case trace == nil:
		return first
	case f.literal:
		return f.tryMeta(ctx, f.at.Len-n, n-tailLen, trace)
	}
	return f.tryMeta(ctx, f.at.Len-tailLen-n, n, trace)
}

// tryMeta reads metadata of n bytes at off.
func (f *content) tryMeta(ctx context.Context, off, n int64, trace func(region.Node)) error {
	at := f.at.Sub(off, n)
	if n < 1 || off < magicLen || off > f.at.Len-tailLen || n > f.at.Len-tailLen-off {
		return fault.Corruptf(f.at.Sub(f.at.Len-tailLen, 4), "footer.length",
			"%d does not fit in a file of %d bytes", n, f.at.Len)
	}
	if n > f.limits.Metadata {
		return fault.Limitf(at, "file_metadata", "%d bytes are more than metadata may have (%d)", n, f.limits.Metadata)
	}
	b := make([]byte, n)
	if err := format.ReadFull(ctx, f.src, at, "file_metadata", b); err != nil {
		return err
	}
	c := wire.NewCursor(b, at, "file_metadata")
	m, _ := parseFileMeta(c.Within(f.limits.Memory()))
	f.meta, f.metaAt = m, at
	err := c.Err()
	switch {
	case err != nil:
	case c.Left() > 0:
		err = fault.Corruptf(at.Sub(int64(c.Pos()), int64(c.Left())), "file_metadata", "%d bytes behind its end",
			c.Left())
	case m.hasCRC && m.crc != m.want && !f.noVerify:
		err = fault.Corruptf(at, "file_metadata.meta_data_crc", "%#08x is stored, %#08x is right", m.crc, m.want)
	default:
		err = m.check(at)
	}
	if trace != nil && (err == nil || m.version >= 0) && !errors.Is(err, fault.Limit) {
		traceMeta(trace, at, b, &m)
	}
	return err
}

func traceMeta(trace func(region.Node), at fault.Span, b []byte, m *fileMeta) {
	trace(region.Node{Kind: region.Struct, Name: "file_metadata", At: at, Inner: -1,
		Value: fmt.Sprintf("generation %s, %s, %d row groups, %d rows", m.gen, m.protocol, len(m.groups), m.rows)})
	parseFileMeta(wire.NewCursor(b, at, "file_metadata").Trace(trace, 1))
}

// place is where the bytes of a chunk are: its object, from base on.
func (f *content) place(ctx context.Context, group, col int) (store.Source, fault.Span, error) {
	c := &f.meta.groups[group].columns[col]
	if c.file == "" {
		end := f.metaAt.Off - f.at.Off
		return f.src, f.at.Sub(0, end), nil
	}
	name, err := f.inside(c.file)
	if err != nil {
		return nil, fault.Span{}, fault.New(fault.Invalid, f.metaAt, chunkPath(group, col)+".file_path", "%v", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	src, ok := f.objects[name]
	if err := f.strange[name]; err != nil {
		return nil, fault.Span{}, err
	}
	if !ok {
		src, err = f.tree.Open(ctx, name)
		if errors.Is(err, fs.ErrNotExist) { // damage of this chunk; the others may be whole
			return nil, fault.Span{}, fault.Corruptf(f.metaAt, chunkPath(group, col)+".file_path",
				"%q, the file of the chunk, is missing", c.file)
		}
		if err != nil {
			return nil, fault.Span{}, err
		}
		if err := f.belongs(ctx, src, name, group, col); err != nil {
			src.Close()
			if errors.Is(err, fault.Corrupt) {
				f.strange[name] = err
			}
			return nil, fault.Span{}, err
		}
		f.objects[name] = src
	}
	return src, fault.Span{Object: name, Len: src.Size()}, nil
}

// inside is the name of the object that file_path means, which must lie in the directory of the file, or below it.
func (f *content) inside(p string) (string, error) {
	name := path.Join(path.Dir(f.at.Object), p)
	if f.opts.outside {
		if path.IsAbs(p) {
			name = path.Clean(p)
		}
		return name, nil
	}
	clean := path.Clean(p)
	if path.IsAbs(p) || clean == ".." || strings.HasPrefix(clean, "../") || strings.ContainsAny(p, "\\\x00") ||
		clean == "." {
		return "", fmt.Errorf("%q leads out of the directory of the file (option outside=true follows it)", p)
	}
	return name, nil
}

// columnMeta is the metadata of a chunk: its copy in the metadata of the file, or what stands at file_offset.
func (f *content) columnMeta(ctx context.Context, group, col int) (*columnMeta, error) {
	c := &f.meta.groups[group].columns[col]
	path := chunkPath(group, col) + ".column_metadata"
	if err := f.lost[chunkKey{group, col}]; err != nil {
		return nil, err
	}
	if c.meta != nil {
		return c.meta, checkColumn(c.meta, f.metaAt, path)
	}
	key := chunkKey{group, col}
	f.mu.Lock()
	m, ok := f.metas[key]
	f.mu.Unlock()
	if ok {
		return m, nil
	}
	src, at, err := f.place(ctx, group, col)
	if err != nil {
		return nil, err
	}
	if c.offset < magicLen || c.offset >= at.Len {
		return nil, fault.Corruptf(f.metaAt, chunkPath(group, col)+".file_offset",
			"%d is not in the %d bytes where column metadata can be", c.offset, at.Len)
	}
	m, _, err = readColumnMeta(ctx, src, at.Sub(c.offset, at.Len-c.offset), f.limits.Metadata, path)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.metas[key] = m
	f.mu.Unlock()
	return m, nil
}

// readColumnMeta reads the column metadata at at.Off; n is its size.
func readColumnMeta(ctx context.Context, src store.Source, at fault.Span, most int64, path string) (*columnMeta,
	int64, error) {
	var m columnMeta
	n, err := readStruct(ctx, src, at, 512, most, path, func(c *wire.Cursor) bool {
		r := thrift.NewReader(c, protocolOf(c.Rest()))
		m = parseColumnMeta(r, "")
		return r.Short()
	})
	if err != nil {
		return nil, n, err
	}
	return &m, n, checkColumn(&m, at.Sub(0, n), path)
}

// checkColumn holds the metadata of a chunk against what the format has.
func checkColumn(m *columnMeta, at fault.Span, path string) error {
	switch {
	case m.typ < 0:
		return fault.Corruptf(at, path+".type", "it is missing or negative")
	case m.typ > ByteArray:
		return fault.Unsupportedf(at, path+".type", "%s", m.typ)
	case m.codec == LZO:
		return fault.Unsupportedf(at, path+".codec", "LZO (codec %d): its framing was never told", int32(LZO))
	case m.codec < 0 || m.codec > LZO:
		return fault.Unsupportedf(at, path+".codec", "%s", m.codec)
	case m.values < 0:
		return fault.Corruptf(at, path+".num_values", "it is missing or negative")
	case len(m.path) == 0 || len(m.path) > maxNesting:
		return fault.Corruptf(at, path+".path_in_schema", "%d names", len(m.path))
	case m.hasLevels && (m.maxDef < 0 || m.maxDef > 2*maxNesting || m.maxRep < 0 || m.maxRep > m.maxDef):
		return fault.Corruptf(at, path, "greatest levels %d and %d", m.maxDef, m.maxRep)
	}
	for _, e := range m.encodings {
		if e < 0 || e > GroupVarInt {
			return fault.Unsupportedf(at, path+".encodings", "%s", e)
		}
	}
	return nil
}

// fits holds the metadata of a chunk against the schema.
func (f *content) fits(m *columnMeta, l *leaf, group, col int) error {
	p := chunkPath(group, col) + ".column_metadata"
	switch {
	case m.typ != l.typ:
		return fault.Corruptf(f.chunkSpan(group, col), p+".type", "%s, the column is %s", m.typ, l.typ)
	case len(l.path) > 0 && !slices.Equal(m.path, l.path):
		return fault.Corruptf(f.chunkSpan(group, col), p+".path_in_schema", "%q, the column is %q", m.path, l.path)
	case m.hasLevels && (m.maxDef != int32(l.maxDef) || m.maxRep != int32(l.maxRep)):
		return fault.Corruptf(f.chunkSpan(group, col), p, "greatest levels %d and %d, the column's are %d and %d",
			m.maxDef, m.maxRep, l.maxDef, l.maxRep)
	}
	return nil
}

// chunkSpan is where a chunk's metadata says to be: for errors.
func (f *content) chunkSpan(group, col int) fault.Span {
	c := &f.meta.groups[group].columns[col]
	if c.file != "" || c.meta != nil || c.offset < 0 || c.offset > f.at.Len {
		return f.metaAt
	}
	return f.at.Sub(c.offset, 1)
}

// Close closes the file and those that its chunks are in.
func (f *content) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.objects {
		s.Close()
	}
	f.objects = map[string]store.Source{}
	return f.src.Close()
}

// firstPage is where the first page of a chunk is. Generation A may leave it out: the chunk then begins behind
// the metadata of the one before, or behind the magic.
func (f *content) firstPage(ctx context.Context, group, col int, m *columnMeta) (int64, error) {
	if m.data >= 0 {
		return m.data, nil
	}
	if col--; col < 0 {
		group--
		col = len(f.meta.groups[0].columns) - 1
	}
	if group < 0 {
		return magicLen, nil
	}
	c := &f.meta.groups[group].columns[col]
	if c.meta != nil || c.file != "" {
		return 0, fault.Corruptf(f.metaAt, chunkPath(group, col), "the next chunk does not say where its first page is")
	}
	src, at, err := f.place(ctx, group, col)
	if err != nil {
		return 0, err
	}
	if c.offset < magicLen || c.offset >= at.Len {
		return 0, fault.Corruptf(f.metaAt, chunkPath(group, col)+".file_offset", "%d is not in the file", c.offset)
	}
	_, n, err := readColumnMeta(ctx, src, at.Sub(c.offset, at.Len-c.offset), f.limits.Metadata,
		chunkPath(group, col)+".column_metadata")
	return c.offset + n, err
}

// structureBehind is where the next structure that the metadata tells of begins behind off, in the object of a
// chunk: metadata of a column, an index page, pages of another chunk, or the end of all.
func (f *content) structureBehind(at fault.Span, off int64, group, col int) int64 {
	name := f.meta.groups[group].columns[col].file
	f.mu.Lock()
	starts, ok := f.starts[name]
	f.mu.Unlock()
	if !ok {
		for g := range f.meta.groups {
			for k := range f.meta.groups[g].columns {
				c := &f.meta.groups[g].columns[k]
				if c.file != name {
					continue
				}
				starts = append(starts, c.offset)
				if c.meta != nil {
					starts = append(starts, c.meta.data, c.meta.index)
				}
			}
		}
		slices.Sort(starts)
		starts = slices.Compact(starts)
		f.mu.Lock()
		f.starts[name] = starts
		f.mu.Unlock()
	}
	i, _ := slices.BinarySearchFunc(starts, off+1, cmp.Compare[int64])
	if i < len(starts) && starts[i] < at.Len {
		return starts[i]
	}
	return at.Len
}

// knownMeta is the metadata of a chunk, if it stands in that of the file or was read; else nil.
func (f *content) knownMeta(group, col int) *columnMeta {
	if m := f.meta.groups[group].columns[col].meta; m != nil {
		return m
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.metas[chunkKey{group, col}]
}
