package container

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"
	"sync"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/schema"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

// File is an open RedFile without its schema: the metadata, and the locations of chunks and their metadata.
type File struct {
	Tree     store.Tree
	Src      store.Source
	At       fault.Span // the whole file; offsets in the metadata are relative to its beginning
	Opts     layout.ReadOptions
	Limits   format.Limits
	NoVerify bool // checksums are not verified, nor are parts compared with the metadata

	Footer  layout.FileMeta
	MetaAt  fault.Span
	Literal bool // the number at the end is the offset from the end, as the document has it, and not the length

	FromParts bool               // recovery collected the row groups from parts, without the table's metadata
	Lost      map[ChunkKey]error // of a recovered file: chunks whose metadata was not found
	Placed    bool               // of a recovered file: chunks are where the metadata of the file has them

	inPlace map[string]int64   // by object, see LastInPlace
	claimed map[ChunkKey]error // chunks that are not read, see overlapping
	begun   map[place]ChunkKey // where chunks begin of which the metadata of the file has no copy, see begins

	mu           sync.Mutex
	metas        map[ChunkKey]*layout.ColumnMeta
	objects      map[string]store.Source // of chunks in other files
	groupsByFile map[string][]int        // row groups by the file_path of their chunks, see groupsIn
	starts       map[string][]int64      // by file_path: the offsets of structures, see StructureAfter
	mismatched   map[string]error        // objects that are not the parts named by the metadata
}

// ChunkKey names a column chunk by the indices of its row group and column.
type ChunkKey struct{ Group, Col int }

// New returns a File from which nothing has been read yet; at is the span of the RedFile within src.
func New(tree store.Tree, src store.Source, at fault.Span, o format.OpenOptions, opts layout.ReadOptions) *File {
	return &File{Tree: tree, Src: src, At: at, Opts: opts, Limits: o.Limits.WithDefaults(), NoVerify: o.NoVerify,
		metas: map[ChunkKey]*layout.ColumnMeta{}, objects: map[string]store.Source{}, mismatched: map[string]error{},
		starts: map[string][]int64{}}
}

// Open reads the metadata of the file and checks the magic at the beginning. trace, unless nil, receives the parts of
// the metadata as nodes. After an error, Footer contains the metadata read so far.
func (f *File) Open(ctx context.Context, trace func(region.Node)) error {
	if f.At.Len < layout.MinFile {
		return fault.Corruptf(f.At, "", "%d bytes are too few for a RedFile", f.At.Len)
	}
	if err := f.readMeta(ctx, trace); err != nil {
		return err
	}
	f.claimed = f.overlapping()
	head := make([]byte, min(f.At.Len, 128))
	if err := format.ReadFull(ctx, f.Src, f.At.Sub(0, int64(len(head))), "magic", head); err != nil {
		return err
	}
	if string(head[:layout.MagicLen]) != layout.Magic {
		return fault.Corruptf(f.At.Sub(0, layout.MagicLen), "magic", "expected %q at the beginning, found %q",
			layout.Magic, head[:layout.MagicLen])
	}
	return f.checkMarker(ctx, head[layout.MagicLen:])
}

// readMeta finds and reads the metadata at the end: N bytes, N as u32 little-endian, magic. The document calls the
// number an "offset from end of file", but every program wrote the length, so the length is tried first. If metadata
// found by the length does not begin with the version, the number is interpreted as an offset, since the bytes before
// the metadata may look like unknown fields.
func (f *File) readMeta(ctx context.Context, trace func(region.Node)) error {
	var end [layout.TailLen]byte
	tail := f.At.Sub(f.At.Len-layout.TailLen, layout.TailLen)
	if err := format.ReadFull(ctx, f.Src, tail, "footer", end[:]); err != nil {
		return err
	}
	if string(end[4:]) != layout.Magic {
		return fault.Corruptf(tail.Sub(4, 4), "magic",
			"expected %q at the end, found %q: the file is cut, or its end is overwritten", layout.Magic, end[4:])
	}
	n := int64(binary.LittleEndian.Uint32(end[:]))
	first := f.tryMeta(ctx, f.At.Len-layout.TailLen-n, n, nil)
	if first != nil || f.Footer.First != layout.VersionField {
		m, at := f.Footer, f.MetaAt
		if f.tryMeta(ctx, f.At.Len-n, n-layout.TailLen, nil) == nil && f.Footer.First == layout.VersionField {
			f.Literal, first = true, nil
		} else {
			f.Footer, f.MetaAt = m, at
		}
	}
	switch { // read again for the trace: only the interpretation that was chosen owns the bytes
	case trace == nil:
		return first
	case f.Literal:
		return f.tryMeta(ctx, f.At.Len-n, n-layout.TailLen, trace)
	}
	return f.tryMeta(ctx, f.At.Len-layout.TailLen-n, n, trace)
}

// tryMeta reads metadata of n bytes at off.
func (f *File) tryMeta(ctx context.Context, off, n int64, trace func(region.Node)) error {
	at := f.At.Sub(off, n)
	if n < 1 || off < layout.MagicLen || off > f.At.Len-layout.TailLen || n > f.At.Len-layout.TailLen-off {
		return fault.Corruptf(f.At.Sub(f.At.Len-layout.TailLen, 4), "footer.length",
			"%d does not fit in a file of %d bytes", n, f.At.Len)
	}
	if n > f.Limits.Metadata {
		return fault.Limitf(at, "file_metadata", "%d bytes, and at most %d are read (metadata limit)", n,
			f.Limits.Metadata)
	}
	b := make([]byte, n)
	if err := format.ReadFull(ctx, f.Src, at, "file_metadata", b); err != nil {
		return err
	}
	c := wire.NewCursor(b, at, "file_metadata")
	m, _ := layout.ParseFileMeta(c.Within(f.Limits.Memory()))
	f.Footer, f.MetaAt = m, at
	err := c.Err()
	switch {
	case err != nil:
	case c.Left() > 0:
		err = fault.Corruptf(at.Sub(int64(c.Pos()), int64(c.Left())), "file_metadata", "%d bytes after its end",
			c.Left())
	case m.HasCRC && m.CRC != m.Want && !f.NoVerify:
		err = fault.Corruptf(at, "file_metadata.meta_data_crc", "expected %#08x, computed %#08x", m.CRC, m.Want)
	default:
		err = m.Check(at)
	}
	if trace != nil && (err == nil || m.Version >= 0) && !fault.OverBudget(err) {
		traceMeta(trace, at, b, &m)
	}
	return err
}

func traceMeta(trace func(region.Node), at fault.Span, b []byte, m *layout.FileMeta) {
	trace(region.Node{Kind: region.Struct, Name: "file_metadata", At: at, Inner: -1,
		Value: fmt.Sprintf("generation %s, %s, %s, %s", m.Gen, m.Protocol, fault.Count(len(m.Groups), "row group"),
			fault.Count(m.Rows, "row"))})
	layout.ParseFileMeta(wire.NewCursor(b, at, "file_metadata").Trace(trace, 1))
}

// Place returns the object that contains a chunk, and the span in which the chunk can be: in this file, everything
// before the metadata. If the object is missing, or is not the part that the metadata names, the error is Corrupt; if
// file_path leads out of the directory, Invalid.
func (f *File) Place(ctx context.Context, group, col int) (store.Source, fault.Span, error) {
	c := &f.Footer.Groups[group].Columns[col]
	if c.File == "" {
		end := f.MetaAt.Off - f.At.Off
		return f.Src, f.At.Sub(0, end), nil
	}
	name, err := f.ObjectOf(c.File)
	if err != nil {
		return nil, fault.Span{}, fault.New(fault.Invalid, f.MetaAt, layout.ChunkPath(group, col)+".file_path", "%v",
			err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	src, ok := f.objects[name]
	if err := f.mismatched[name]; err != nil {
		return nil, fault.Span{}, err
	}
	if !ok {
		src, err = f.Tree.Open(ctx, name)
		if errors.Is(err, fs.ErrNotExist) || store.NoFile(err) { // only this chunk is damaged; the others may be intact
			return nil, fault.Span{}, fault.Corruptf(f.MetaAt, layout.ChunkPath(group, col)+".file_path",
				"%q, the file of the chunk, is missing", c.File)
		}
		if err != nil {
			return nil, fault.Span{}, err
		}
		if err := f.checkPart(ctx, src, name, group, col); err != nil {
			src.Close()
			if errors.Is(err, fault.Corrupt) {
				f.mismatched[name] = err
			}
			return nil, fault.Span{}, err
		}
		f.objects[name] = src
	}
	return src, fault.Span{Object: name, Len: src.Size()}, nil
}

// ObjectOf returns the name of the object to which file_path refers. It must be in the directory of the file or below
// it, unless option outside is set.
func (f *File) ObjectOf(p string) (string, error) {
	name := path.Join(path.Dir(f.At.Object), p)
	if f.Opts.Outside {
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

// ColumnMeta returns the metadata of a chunk: the copy in the metadata of the file, or else the metadata at
// file_offset. With an error of class Unsupported, it may return the metadata in which the unsupported value is.
func (f *File) ColumnMeta(ctx context.Context, group, col int) (*layout.ColumnMeta, error) {
	c := &f.Footer.Groups[group].Columns[col]
	path := layout.ChunkPath(group, col) + ".column_metadata"
	if err := cmp.Or(f.Lost[ChunkKey{group, col}], f.claimed[ChunkKey{group, col}]); err != nil {
		return nil, err
	}
	if c.Meta != nil {
		return c.Meta, CheckColumn(c.Meta, f.MetaAt, path)
	}
	key := ChunkKey{group, col}
	f.mu.Lock()
	m, ok := f.metas[key]
	f.mu.Unlock()
	if ok {
		return m, nil
	}
	src, at, err := f.Place(ctx, group, col)
	if err != nil {
		return nil, err
	}
	if c.Offset < layout.MagicLen || c.Offset >= at.Len {
		return nil, fault.Corruptf(f.MetaAt, layout.ChunkPath(group, col)+".file_offset",
			"%d is not in the %d bytes where column metadata can be", c.Offset, at.Len)
	}
	m, _, err = ReadColumnMeta(ctx, src, at.Sub(c.Offset, at.Len-c.Offset), f.Limits.Metadata, path)
	if err != nil {
		return m, err
	}
	if err := f.endsAt(group, col, m, at); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begins(key, c.File, m); err != nil {
		return nil, err
	}
	f.metas[key] = m
	return m, nil
}

// SetMeta sets the metadata of a chunk that has it only after its pages.
func (f *File) SetMeta(group, col int, m *layout.ColumnMeta) { f.metas[ChunkKey{group, col}] = m }

// ReadColumnMeta reads the column metadata at at.Off, which may be at most at.Len and at most limit bytes long, and
// returns its size in bytes.
func ReadColumnMeta(ctx context.Context, src store.Source, at fault.Span, limit int64,
	path string) (*layout.ColumnMeta, int64, error) {
	var m layout.ColumnMeta
	n, err := layout.ReadStruct(ctx, src, at, 512, limit, path, func(c *wire.Cursor) bool {
		r := thrift.NewReader(c, layout.ProtocolOf(c.Rest()))
		m = layout.ParseColumnMeta(r, "")
		return r.Short()
	})
	if err != nil {
		return nil, n, err
	}
	return &m, n, CheckColumn(&m, at.Sub(0, n), path)
}

// CheckColumn returns an error if the metadata of a chunk is impossible (Corrupt), has an unknown type, codec or
// encoding (Unsupported), or has levels that do not fit in a byte (Limit).
func CheckColumn(m *layout.ColumnMeta, at fault.Span, path string) error {
	switch {
	case m.Type < 0:
		return fault.Corruptf(at, path+".type", "it is missing or negative")
	case m.Type > layout.ByteArray:
		return fault.Unsupportedf(at, path+".type", "%s", m.Type)
	case m.Codec == layout.LZO:
		return fault.Unsupportedf(at, path+".codec", "LZO (codec %d): its framing was never documented",
			int32(layout.LZO))
	case m.Codec < 0 || m.Codec > layout.LZO:
		return fault.Unsupportedf(at, path+".codec", "%s", m.Codec)
	case m.Values < 0:
		return fault.Corruptf(at, path+".num_values", "it is missing or negative")
	case len(m.Path) == 0:
		return fault.Corruptf(at, path+".path_in_schema", "no names")
	case m.HasLevels && m.MaxDef > math.MaxUint8 && int(m.MaxDef) > len(m.Path): // each name adds at most one level
		return fault.Corruptf(at, path+".max_definition_level", "expected at most %d, the names of the path, found %d",
			len(m.Path), m.MaxDef)
	case len(m.Path) > math.MaxUint8 || m.HasLevels && m.MaxDef > math.MaxUint8: // a level is a byte
		return fault.Limitf(at, path+".path_in_schema", "%d names and %s, and at most %d are read", len(m.Path),
			fault.Count(m.MaxDef, "level"), math.MaxUint8)
	case m.HasLevels && (m.MaxDef < 0 || m.MaxRep < 0 || m.MaxRep > m.MaxDef):
		return fault.Corruptf(at, path, "max levels %d and %d", m.MaxDef, m.MaxRep)
	}
	for _, e := range m.Encodings {
		if e < 0 || e > layout.GroupVarInt {
			return fault.Unsupportedf(at, path+".encodings", "%s", e)
		}
	}
	return nil
}

// CheckMeta returns an error of class Corrupt if type, path or maximum levels in the metadata of a chunk differ from
// those of its leaf in the schema.
func (f *File) CheckMeta(m *layout.ColumnMeta, l *schema.Leaf, group, col int) error {
	p := layout.ChunkPath(group, col) + ".column_metadata"
	switch {
	case m.Type != l.Type:
		return fault.Corruptf(f.ChunkSpan(group, col), p+".type", "expected %s, the type of the column, found %s",
			l.Type, m.Type)
	case len(l.Path) > 0 && !slices.Equal(m.Path, l.Path):
		return fault.Corruptf(f.ChunkSpan(group, col), p+".path_in_schema", "expected %q, the path of the column, "+
			"found %q", l.Path, m.Path)
	case m.HasLevels && (m.MaxDef != int32(l.MaxDef) || m.MaxRep != int32(l.MaxRep)):
		return fault.Corruptf(f.ChunkSpan(group, col), p, "expected maximum levels %d and %d, those of the column, "+
			"found %d and %d", l.MaxDef, l.MaxRep, m.MaxDef, m.MaxRep)
	}
	return nil
}

// ChunkSpan returns the place for errors about a chunk: one byte at its metadata, or the metadata of the file if the
// chunk is described there.
func (f *File) ChunkSpan(group, col int) fault.Span {
	c := &f.Footer.Groups[group].Columns[col]
	if c.File != "" || c.Meta != nil || c.Offset < 0 || c.Offset > f.At.Len {
		return f.MetaAt
	}
	return f.At.Sub(c.Offset, 1)
}

// Close closes the file and the other files that contain its chunks.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.objects {
		s.Close()
	}
	f.objects = map[string]store.Source{}
	return f.Src.Close()
}

// FirstPage returns the offset of the first page of a chunk in its object. Generation A may omit it: the chunk then
// begins after the metadata of the previous one, or after the magic.
func (f *File) FirstPage(ctx context.Context, group, col int, m *layout.ColumnMeta) (int64, error) {
	if m.Data >= 0 {
		return m.Data, nil
	}
	if col--; col < 0 {
		group--
		col = len(f.Footer.Groups[0].Columns) - 1
	}
	if group < 0 {
		return layout.MagicLen, nil
	}
	c := &f.Footer.Groups[group].Columns[col]
	if c.Meta != nil || c.File != "" {
		return 0, fault.Corruptf(f.MetaAt, layout.ChunkPath(group, col),
			"the next chunk does not say where its first page is")
	}
	src, at, err := f.Place(ctx, group, col)
	if err != nil {
		return 0, err
	}
	if c.Offset < layout.MagicLen || c.Offset >= at.Len {
		return 0, fault.Corruptf(f.MetaAt, layout.ChunkPath(group, col)+".file_offset", "%d is not in the file",
			c.Offset)
	}
	_, n, err := ReadColumnMeta(ctx, src, at.Sub(c.Offset, at.Len-c.Offset), f.Limits.Metadata,
		layout.ChunkPath(group, col)+".column_metadata")
	return c.Offset + n, err
}

// StructureAfter returns the offset of the next structure after off that the metadata locates in the object of a chunk:
// metadata of a column, an index page, or the first page of another chunk; at.Len if there is none.
func (f *File) StructureAfter(at fault.Span, off int64, group, col int) int64 {
	starts := f.structures(group, col)
	i, _ := slices.BinarySearchFunc(starts, off+1, cmp.Compare[int64])
	if i < len(starts) && starts[i] < at.Len {
		return starts[i]
	}
	return at.Len
}

// StructureBefore returns the offset of the last structure before off that the metadata locates in the object of a
// chunk; if there is none, the offset of the first byte after the magic.
func (f *File) StructureBefore(off int64, group, col int) int64 {
	starts := f.structures(group, col)
	if i, _ := slices.BinarySearch(starts, off); i > 0 {
		return max(layout.MagicLen, starts[i-1])
	}
	return layout.MagicLen
}

// structures returns all offsets in the metadata that refer to the object of a chunk, ascending. Absent ones are -1.
func (f *File) structures(group, col int) []int64 {
	name := f.Footer.Groups[group].Columns[col].File
	f.mu.Lock()
	defer f.mu.Unlock()
	if starts, ok := f.starts[name]; ok {
		return starts
	}
	var starts []int64
	for g := range f.Footer.Groups {
		for k := range f.Footer.Groups[g].Columns {
			c := &f.Footer.Groups[g].Columns[k]
			if c.File != name {
				continue
			}
			starts = append(starts, c.Offset)
			if c.Meta != nil {
				starts = append(starts, c.Meta.Data, c.Meta.Index)
			}
		}
	}
	slices.Sort(starts)
	f.starts[name] = slices.Compact(starts)
	return f.starts[name]
}

// LastInPlace returns the offset of the last copy of a chunk's metadata in the object of a chunk for which inPlace
// reports true: nothing before it has moved. It is computed once; -1 if there is none.
func (f *File) LastInPlace(group, col int, inPlace func(group, col int) (bool, error)) (int64, error) {
	name := f.Footer.Groups[group].Columns[col].File
	f.mu.Lock()
	last, ok := f.inPlace[name]
	f.mu.Unlock()
	if ok {
		return last, nil
	}
	last = -1
	for g := range f.Footer.Groups {
		for k := range f.Footer.Groups[g].Columns {
			c := &f.Footer.Groups[g].Columns[k]
			if c.File != name || c.Offset <= last {
				continue
			}
			if there, err := inPlace(g, k); err != nil {
				return -1, err
			} else if there {
				last = c.Offset
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.inPlace == nil {
		f.inPlace = map[string]int64{}
	}
	f.inPlace[name] = last
	return last, nil
}

// Describes reports whether m has the path and the first page of a chunk in the object name.
func (f *File) Describes(m *layout.ColumnMeta, name string) bool {
	for g := range f.Footer.Groups {
		for k := range f.Footer.Groups[g].Columns {
			c := &f.Footer.Groups[g].Columns[k]
			if c.File == name && c.Meta != nil && c.Meta.Data == m.Data && slices.Equal(c.Meta.Path, m.Path) {
				return true
			}
		}
	}
	return false
}

// ValuesAt returns the number of values of the chunk whose pages begin at off in the object of the given chunk; 0 if
// there is none.
func (f *File) ValuesAt(off int64, group, col int) int64 {
	name := f.Footer.Groups[group].Columns[col].File
	for g := range f.Footer.Groups {
		for k := range f.Footer.Groups[g].Columns {
			if c := &f.Footer.Groups[g].Columns[k]; c.File == name && c.Meta != nil && c.Meta.Data == off {
				return c.Meta.Values
			}
		}
	}
	return 0
}

// KnownMeta returns the metadata of a chunk without reading it; nil if it is not in the file's metadata and has not
// been read yet.
func (f *File) KnownMeta(group, col int) *layout.ColumnMeta {
	if m := f.Footer.Groups[group].Columns[col].Meta; m != nil {
		return m
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.metas[ChunkKey{group, col}]
}
