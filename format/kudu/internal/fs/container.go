package fs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"
	"sync"

	"stoa/fault"
	"stoa/format/kudu/internal/codes"
	"stoa/format/kudu/internal/pbc"
	"stoa/internal/pb"
	"stoa/internal/sorted"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

// Container is a log container: a pair of files in a data directory. NAME.data holds blocks one after another, each at
// a multiple of the file system's block size; NAME.metadata is a protobuf container of BlockRecordPBs, a journal of
// where blocks were created and which were deleted. Deleting a block punches a hole into the data file, whose length
// stays the same unless its end is truncated.
type Container struct {
	Dir      int      // data directory: index into FS.DataDirs
	Name     string   // without suffix
	Data     string   // data file; "" if there is none
	Metadata string   // metadata file; "" if there is none
	Size     int64    // of the data file, in bytes
	Live     []Extent // sorted by offset, as Dead is
	Dead     []Extent // created and deleted: a hole, or stale bytes
	Lost     []Extent // created, not deleted, and not (completely) in the data file; in the order of creation
	Records  int      // number of records that could be read
	Torn     bool     // the metadata ends in an incomplete record, which is not a loss
	// Err is the first damage: one of the files is missing, a record is bad, or blocks reach beyond the end of the data
	// file. Blocks in Live can still be read.
	Err error
	// Unknown is true if records of the metadata are lost: the data file may hold blocks that are in none of the lists,
	// and blocks in Live may have been deleted.
	Unknown bool
}

// Extent is a block in a container's data file.
type Extent struct {
	ID       uint64
	Off, Len int64
}

// blockRecord is a BlockRecordPB.
type blockRecord struct {
	id        uint64
	op        int32 // RecordCreate, RecordDelete
	timestamp uint64
	off, len  int64
	placed    bool // offset and length are set
}

// Values of op_type.
const (
	RecordCreate = 1
	RecordDelete = 2
)

// ParseBlockRecord reads a BlockRecordPB.
func ParseBlockRecord(c *wire.Cursor) (b blockRecord) {
	hasOff, hasLen, hasID := false, false, false
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			m := r.Message("block_id")
			for r := pb.NewReader(m); r.Next(); {
				if r.Field() == 1 {
					b.id, hasID = r.Fixed64("id"), true
				} else {
					r.Unknown()
				}
			}
			r.Join(m)
		case 2:
			b.op = r.Enum("op_type", func(v int32) string {
				switch v {
				case RecordCreate:
					return "CREATE"
				case RecordDelete:
					return "DELETE"
				}
				return fmt.Sprint(v)
			})
		case 3:
			b.timestamp = r.Uint("timestamp_us")
		case 4:
			b.off, hasOff = r.Int("offset"), true
		case 5:
			b.len, hasLen = r.Int("length"), true
		default:
			r.Unknown()
		}
	}
	b.placed = hasOff && hasLen
	switch {
	case c.Err() != nil:
	case !hasID:
		c.Fail(0, c.Pos(), "block_id", "a required field is missing")
	case b.op != RecordCreate && b.op != RecordDelete:
		c.Fail(0, c.Pos(), "op_type", "%d is neither CREATE nor DELETE", b.op)
	case b.op == RecordCreate && (!b.placed || b.off < 0 || b.len < 0 || b.off > math.MaxInt64-b.len):
		c.Fail(0, c.Pos(), "offset", "block %d is created at %d with %d bytes", b.id, b.off, b.len)
	}
	return b
}

// openContainers finds and reads the containers of a data directory.
func (f *FS) openContainers(ctx context.Context, dir int) error {
	type pair struct{ data, meta string }
	found := map[string]*pair{}
	get := func(name string) *pair {
		if found[name] == nil {
			found[name] = &pair{}
		}
		return found[name]
	}
	sizes := map[string]int64{}
	for info, err := range f.Tree.List(ctx, f.DataDirs[dir].Dir) {
		if Gone(err) {
			f.Note("kudu.layout.missing", fault.Span{Object: f.DataDirs[dir].Dir}, "", "the directory does not exist")
			return nil
		}
		if err != nil {
			return err
		}
		base := path.Base(info.Name)
		if info.Dir {
			continue
		}
		if name, ok := strings.CutSuffix(base, MetadataSuffix); ok {
			get(name).meta = info.Name
		} else if name, ok := strings.CutSuffix(base, DataSuffix); ok {
			get(name).data = info.Name
			sizes[name] = info.Size
		}
	}
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	var files []string
	for _, name := range names {
		if found[name].meta != "" {
			files = append(files, found[name].meta)
		}
	}
	metadata := readAhead(ctx, f.Tree, files)
	defer metadata.stop()
	for _, name := range names {
		c := &Container{Dir: dir, Name: name, Data: found[name].data, Metadata: found[name].meta, Size: sizes[name]}
		if err := f.readContainer(ctx, c, metadata.open); err != nil {
			return err
		}
		f.addContainer(c)
	}
	return nil
}

// usualBlockSize is the block size of the file systems on which Kudu usually runs, in bytes.
const usualBlockSize = 4096

// OpenContainer opens the container of which data is the data file, alone. Damage is in the container's Err.
func OpenContainer(ctx context.Context, tree store.Tree, data string, o FSOptions) (*FS, *Container, error) {
	f := &FS{Tree: OrLocal(tree), Options: o, Blocks: map[uint64]Placed{}, taken: o.Limits.Memory(),
		BlockManager: LogManager, DataDirs: []DataDir{{Dir: path.Dir(data), BlockSize: usualBlockSize}}}
	info, err := f.Tree.Stat(ctx, data)
	if err != nil {
		return nil, nil, err
	}
	c := &Container{Name: strings.TrimSuffix(path.Base(data), DataSuffix), Data: data, Size: info.Size}
	beside := strings.TrimSuffix(data, DataSuffix) + MetadataSuffix
	if _, err := f.Tree.Stat(ctx, beside); err == nil {
		c.Metadata = beside
	} else if !Gone(err) {
		return nil, nil, err
	}
	if err := f.readContainer(ctx, c, f.Tree.Open); err != nil {
		return nil, nil, err
	}
	f.addContainer(c)
	return f, c, nil
}

// readContainer reads the records of c. Damage is noted in c and as findings, and is not an error.
func (f *FS) readContainer(ctx context.Context, c *Container,
	open func(context.Context, string) (store.Source, error)) error {
	at := fault.Span{Object: cmp.Or(c.Metadata, c.Data)}
	if c.Metadata == "" {
		at.Len = c.Size
		c.Unknown = c.Size > 0
		c.Err = fault.Corruptf(at, "container", "%s is missing: nothing says where its blocks are",
			c.Name+MetadataSuffix)
		f.fault("kudu.container.missing", c.Err, c.Name)
		return nil
	}
	src, err := open(ctx, c.Metadata)
	if Gone(err) { // a running server has deleted it in the meantime
		c.Metadata = ""
		return f.readContainer(ctx, c, open)
	}
	if err != nil {
		return err
	}
	defer src.Close()
	if src.Size() < int64(pbc.HeadV1) && c.Size == 0 {
		f.noteIncomplete(c, src.Size())
		return nil
	}
	r, err := pbc.Open(ctx, src, c.Metadata, pbc.Options{Limits: f.Options.Limits, NoVerify: f.Options.NoVerify})
	if r == nil {
		if fault.NotOfFile(err) {
			return err
		}
		if pbc.IsTorn(err) && c.Size == 0 {
			f.noteIncomplete(c, src.Size())
			return nil
		}
		c.Err, c.Unknown = err, c.Size > 0
		f.fault("kudu.container.damaged", err, c.Name)
		return nil
	}
	if err != nil {
		f.fault("kudu.container.damaged", err, c.Name)
		c.Err = err
	}
	if err := c.read(ctx, f, r); err != nil {
		return err
	}
	if c.Data == "" && len(c.Lost) > 0 {
		err := fault.Corruptf(fault.Span{Object: c.Metadata, Len: src.Size()}, "container",
			"%s is missing, and with it %s", c.Name+DataSuffix, fault.Count(len(c.Lost), "block"))
		f.fault("kudu.container.missing", err, c.Name)
		if c.Err == nil {
			c.Err = err
		}
	}
	return nil
}

// noteIncomplete reports that the server stopped while creating c, whose metadata has size bytes.
func (f *FS) noteIncomplete(c *Container, size int64) {
	f.Note("kudu.container.incomplete", fault.Span{Object: c.Metadata, Len: size}, "",
		"the container was not completely created, and is empty")
}

// perBlock is the memory that a block is assumed to need, in bytes, in the lists of its container and in FS.Blocks.
const perBlock = 160

// read replays the records.
func (c *Container) read(ctx context.Context, f *FS, r *pbc.Reader) error {
	l := recordLog{c: c, f: f, live: map[uint64]Extent{}}
	for {
		rec, err := r.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			switch {
			case pbc.IsTorn(err):
				c.Torn = true
				f.Note("kudu.container.torn", pbc.SpanOf(err), "",
					"the metadata of the container ends in an incomplete record")
			case errors.Is(err, fault.Corrupt):
				l.addError(err)
			default:
				return err
			}
			continue
		}
		c.Records++
		cur := r.Cursor(rec, fmt.Sprintf("record[%d]", rec.Index))
		b := ParseBlockRecord(cur)
		if cur.Err() != nil {
			l.addError(cur.Err())
			continue
		}
		switch b.op {
		case RecordCreate:
			if err := l.create(b, rec.Index, rec.At, rec.Body); err != nil {
				return err
			}
		case RecordDelete:
			l.delete(b, rec.Index, rec.Body)
		}
	}
	l.place(ctx)
	c.reportTruncated(f)
	byPlace := func(a, b Extent) int { return cmp.Or(cmp.Compare(a.Off, b.Off), cmp.Compare(a.ID, b.ID)) }
	sorted.By(c.Live, byPlace)
	sorted.By(c.Dead, byPlace)
	return nil
}

// recordLog replays the records of a container.
type recordLog struct {
	c     *Container
	f     *FS
	live  map[uint64]Extent
	order []uint64 // ids in the order of creation
	bad   int      // records that are damaged, or contradict earlier ones
}

// addError records a bad record.
func (l *recordLog) addError(err error) {
	if l.bad++; l.bad <= codes.MaxAlike {
		l.f.fault("kudu.container.record", err, l.c.Name)
	}
	if l.c.Err == nil {
		l.c.Err = err
	}
	l.c.Unknown = true
}

// create replays a CREATE record. It fails only if the memory budget is exceeded.
func (l *recordLog) create(b blockRecord, index int, at, body fault.Span) error {
	if _, ok := l.live[b.id]; ok {
		l.addError(fault.Corruptf(body, fmt.Sprintf("record[%d].block_id", index),
			"block %d is created a second time", b.id))
		return nil
	}
	if err := l.f.taken.Take(perBlock, at, "container"); err != nil {
		return err
	}
	l.live[b.id] = Extent{b.id, b.off, b.len}
	l.order = append(l.order, b.id)
	return nil
}

// delete replays a DELETE record.
func (l *recordLog) delete(b blockRecord, index int, body fault.Span) {
	x, ok := l.live[b.id]
	if !ok {
		if !l.c.Unknown { // otherwise its CREATE is among the lost records
			l.addError(fault.Corruptf(body, fmt.Sprintf("record[%d].block_id", index),
				"block %d is deleted without having been created", b.id))
		}
		return
	}
	delete(l.live, b.id)
	l.c.Dead = append(l.c.Dead, x)
}

// place sorts the blocks that were not deleted into those that are in the data file, and those that are not.
func (l *recordLog) place(ctx context.Context) {
	c, again := l.c, false
	for _, id := range l.order {
		x, ok := l.live[id]
		if !ok {
			continue
		}
		delete(l.live, id) // an id that was created, deleted and created again occurs twice in order
		if x.Len > 0 && x.Off+x.Len > c.Size && !again && c.Data != "" {
			// A running server may have appended to the file since the directory was listed.
			again = true
			if info, err := l.f.Tree.Stat(ctx, c.Data); err == nil {
				c.Size = info.Size
			}
		}
		if x.Len > 0 && x.Off+x.Len > c.Size {
			c.Lost = append(c.Lost, x)
			continue
		}
		c.Live = append(c.Live, x)
	}
}

// reportTruncated records that blocks reach beyond the end of the data file.
func (c *Container) reportTruncated(f *FS) {
	if len(c.Lost) == 0 || c.Data == "" {
		return
	}
	x := c.Lost[0]
	err := fault.Corruptf(fault.Span{Object: c.Data, Off: x.Off, Len: x.Len}, "container",
		"block %d reaches past the end of the data file (%d); %d blocks do", x.ID, c.Size, len(c.Lost))
	f.fault("kudu.container.truncated", err, c.Name)
	if c.Err == nil {
		c.Err = err
	}
}

// addContainer adds the blocks of c to f.Blocks. If blocks have the same id, the first one that is not lost is there,
// and the others are in f.again.
func (f *FS) addContainer(c *Container) {
	n := int32(len(f.Containers))
	f.Containers = append(f.Containers, c)
	var end int64
	for _, x := range c.Live {
		if x.Len > 0 && x.Off < end {
			f.fault("kudu.container.overlap",
				fault.Corruptf(fault.Span{Object: c.Data, Off: x.Off, Len: x.Len}, "container",
					"block %d begins before the end of the previous block (%d)", x.ID, end), c.Name)
		}
		end = max(end, x.Off+x.Len)
		if was, ok := f.Blocks[x.ID]; ok {
			f.fault("kudu.block.twice", fault.Corruptf(fault.Span{Object: c.Data, Off: x.Off, Len: x.Len},
				"container", "block %d is also in container %s", x.ID, f.Containers[was.Container].Name), c.Name)
			if !was.lost {
				if f.again == nil {
					f.again, f.found = map[uint64][]Placed{}, new(sync.Map)
				}
				f.again[x.ID] = append(f.again[x.ID], Placed{x.Off, x.Len, n, false})
				continue
			}
		}
		f.Blocks[x.ID] = Placed{x.Off, x.Len, n, false}
	}
	for _, x := range c.Lost {
		if _, ok := f.Blocks[x.ID]; !ok {
			f.Blocks[x.ID] = Placed{x.Off, x.Len, n, true}
		}
	}
}

// Section is a part of a container's data file.
type Section struct {
	// Struct: a live block; Dead: a deleted one; Pad: alignment before the next block, or preallocated space; Gap:
	// bytes that no block claims.
	Kind  region.Kind
	Block uint64 // id; 0 for Pad and Gap
	At    fault.Span
}

// Sections divides the data file of a log container into sections, which cover it without gaps or overlaps. After a
// block there is padding up to the next multiple of the file system's block size. Zeros after the last block are
// assumed to be preallocated space, because nothing else marks it.
func (f *FS) Sections(ctx context.Context, c *Container) ([]Section, error) {
	if c.Data == "" {
		return nil, nil
	}
	align := max(f.DataDirs[c.Dir].BlockSize, 1)
	type claim struct {
		Extent
		kind region.Kind
	}
	claims := make([]claim, 0, len(c.Live)+len(c.Dead))
	for _, x := range c.Live {
		claims = append(claims, claim{x, region.Struct})
	}
	for _, x := range c.Dead {
		claims = append(claims, claim{x, region.Dead})
	}
	sorted.StablyBy(claims, func(a, b claim) int { return cmp.Compare(a.Off, b.Off) })
	var out []Section
	var pos int64
	add := func(kind region.Kind, id uint64, end int64) {
		if end = min(end, c.Size); end > pos {
			out = append(out, Section{kind, id, fault.Span{Object: c.Data, Off: pos, Len: end - pos}})
			pos = end
		}
	}
	fill := func(to int64) { // up to the next block, or the end
		if up := (pos + align - 1) / align * align; pos > 0 {
			add(region.Pad, 0, min(up, to))
		}
		add(region.Gap, 0, to)
	}
	for _, x := range claims {
		if x.Len == 0 {
			continue
		}
		if x.Off > pos {
			fill(x.Off)
		}
		add(x.kind, x.ID, x.Off+x.Len)
	}
	if pos < c.Size {
		zero, err := f.isZero(ctx, fault.Span{Object: c.Data, Off: pos, Len: c.Size - pos})
		if err != nil {
			return out, err
		}
		if zero {
			add(region.Pad, 0, c.Size)
		} else {
			fill(c.Size)
		}
	}
	return out, nil
}

// isZero reports whether all bytes of a span are zero, up to the end of the file.
func (f *FS) isZero(ctx context.Context, at fault.Span) (bool, error) {
	src, err := f.Tree.Open(ctx, at.Object)
	if err != nil {
		return false, err
	}
	defer src.Close()
	buf := make([]byte, min(at.Len, 1<<20))
	for done := int64(0); done < at.Len; {
		b := buf[:min(int64(len(buf)), at.Len-done)]
		n, err := src.ReadAt(ctx, b, at.Off+done)
		if n < len(b) && err != nil && err != io.EOF {
			return false, err
		}
		for _, x := range b[:n] {
			if x != 0 {
				return false, nil
			}
		}
		if n == 0 {
			break
		}
		done += int64(n)
	}
	return true, nil
}
