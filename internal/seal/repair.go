package seal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/klauspost/reedsolomon"

	"stoa/store"
)

// Repaired is the result of Repair.
type Repaired struct {
	Files, Whole int      // files that were written; those that were written unchanged
	Blocks       int64    // number of restored blocks
	Bytes        int64    // number of bytes written
	Left         []string // links and pipes, which are not written
}

// UnrepairableError lists the blocks for which there is too little parity. Nothing was written.
type UnrepairableError struct{ Places []Difference }

func (e *UnrepairableError) Error() string {
	d := e.Places[0]
	text := fmt.Sprintf("%s: the %d bytes from %d on cannot be restored", d.File, d.Len, d.Off)
	if d.Message != "" {
		text += ": " + d.Message
	}
	if n := len(e.Places) - 1; n > 0 {
		text += fmt.Sprintf("; so it is at %d more place%s", n, map[bool]string{false: "s"}[n == 1])
	}
	return text
}

// Repair writes all files in their sealed form into sink; changed blocks are restored from parity. Every block is
// compared with the seal before it is written, and everything written is read back and compared before it becomes
// visible. p has the present places of the files, as many and in the same order as when they were sealed. Errors:
// an *UnrepairableError if parity does not suffice; a seal that has lost names or checksums of files. In both cases
// nothing is written.
func (s *Seal) Repair(ctx context.Context, p Places, sink store.Sink) (m Repaired, err error) {
	roots := p.Roots
	if len(roots) != len(s.head.Roots) {
		return m, fmt.Errorf("%d places were sealed, %d are given", len(s.head.Roots), len(roots))
	}
	if !s.whole {
		return m, fmt.Errorf("the seal has lost which files there were: %d of %d are known", len(s.files), s.head.Files)
	}
	if len(s.lostSums) > 0 { // the output could not be checked
		return m, fmt.Errorf("the seal has lost checksums of %s", s.lostSums[0].label(roots))
	}
	x := &repairer{ctx: ctx, s: s, places: p, open: map[int]*openFile{}, at: -1}
	defer x.close()
	defer func() {
		if err != nil {
			err = errors.Join(err, sink.Abort(context.WithoutCancel(ctx)))
		}
	}()
	for _, f := range s.files {
		if f.Kind != Regular {
			m.Left = append(m.Left, f.label(roots))
			continue
		}
		if err := x.write(ctx, sink, f, &m); err != nil {
			return m, err
		}
	}
	if len(x.lost) > 0 {
		return m, &UnrepairableError{x.lost}
	}
	if err := s.prove(ctx, sink); err != nil {
		return m, err
	}
	return m, sink.Commit(ctx)
}

// outName returns the name of a file in the output.
func (s *Seal) outName(f *File) string {
	if len(s.head.Roots) == 1 {
		if f.Name == "." {
			return ""
		}
		return f.Name
	}
	base := s.head.Roots[f.Root]
	if base == "" || base[0] == '.' || strings.ContainsAny(base, "/\\\x00") ||
		slices.Index(s.head.Roots, base) != f.Root {
		base = fmt.Sprint("place-", f.Root+1)
	}
	return path.Join(base, f.Name)
}

// prove reads back the written files and compares them with the seal.
func (s *Seal) prove(ctx context.Context, sink store.Sink) error {
	p, ok := sink.(store.Peeker)
	if !ok {
		return nil
	}
	tree, place := p.Peek()
	if tree == nil {
		return nil
	}
	for _, f := range s.files {
		if f.Kind != Regular {
			continue
		}
		name := path.Join(place, s.outName(f))
		src, err := tree.Open(ctx, name)
		if err != nil {
			return err
		}
		size := src.Size()
		d, err := s.compare(ctx, f, io.NewSectionReader(store.ReaderAt(ctx, src), 0, size), size)
		src.Close()
		if err != nil {
			return err
		}
		if size != f.Size || len(d.runs) > 0 || d.unknown > 0 || s.digests[f.Index] != "" &&
			s.digests[f.Index] != d.digest {
			return fmt.Errorf("%s: what was written reads back as other bytes than were sealed", name)
		}
	}
	return nil
}

// repairer restores blocks, window by window.
type repairer struct {
	ctx    context.Context
	s      *Seal
	places Places
	open   map[int]*openFile // by file; nil if it cannot be read
	lost   []Difference

	at   int64            // the window that was restored last
	made map[int64][]byte // its restored blocks, by their number among all blocks
	why  string           // why the others could not be restored
}

func (x *repairer) close() {
	for _, f := range x.open {
		if f != nil {
			f.Close()
		}
	}
	x.open = map[int]*openFile{}
}

// source opens a file in its present state; nil if it cannot be read. A store that does not answer is an error: the
// file is not lost.
func (x *repairer) source(f *File) (*openFile, error) {
	if in, ok := x.open[f.Index]; ok {
		return in, nil
	}
	if len(x.open) > 200 {
		x.close()
	}
	var in *openFile
	far := x.places.far(f)
	if far || x.regular(f) {
		var err error
		if in, err = x.places.open(x.ctx, f); err != nil && far && store.Failing(err) {
			return nil, err
		}
	}
	x.open[f.Index] = in
	return in, nil
}

// regular reports whether a file is still one: opening a pipe would not end.
func (x *repairer) regular(f *File) bool {
	name, err := f.path(x.places.Roots)
	now := File{}
	return err == nil && now.look(name) == nil && now.Kind == Regular
}

// read reads block b of a file; it returns false if the block differs from the sealed one.
func (x *repairer) read(f *File, known *sums, b int64) ([]byte, bool, error) {
	want, ok, err := known.of(b)
	if err != nil || !ok {
		return nil, false, err
	}
	in, err := x.source(f)
	if err != nil || in == nil {
		return nil, false, err
	}
	buf := make([]byte, min(Block, f.Size-b*Block))
	if n, err := in.ReadAt(buf, b*Block); n < len(buf) { // unreadable bytes of a disk are restored
		if err != io.EOF && x.places.far(f) {
			return nil, false, err
		}
		return nil, false, nil
	}
	return buf, sumOf(buf) == want, nil
}

// write writes a file, block by block.
func (x *repairer) write(ctx context.Context, sink store.Sink, f *File, m *Repaired) error {
	out, err := sink.Create(ctx, x.s.outName(f))
	if err != nil {
		return err
	}
	closed := false
	defer func() {
		if !closed {
			out.Close()
		}
	}()
	known, before := &sums{seal: x.s, file: f}, m.Blocks
	for b := range f.blocks() {
		if err := ctx.Err(); err != nil {
			return err
		}
		block, ok, err := x.read(f, known, b)
		if err != nil {
			return err
		}
		if !ok {
			if block, err = x.make(f, b); err != nil {
				return err
			}
			if block == nil {
				x.markLost(f, b)
				continue
			}
			m.Blocks++
		}
		if len(x.lost) > 0 {
			continue
		}
		if _, err := out.Write(block); err != nil {
			return err
		}
		m.Bytes += int64(len(block))
	}
	closed = true
	if m.Files++; m.Blocks == before {
		m.Whole++
	}
	return out.Close()
}

func (x *repairer) markLost(f *File, b int64) {
	name, off, n := f.label(x.places.Roots), b*Block, min(Block, f.Size-b*Block)
	if k := len(x.lost) - 1; k >= 0 && x.lost[k].File == name && x.lost[k].Off+x.lost[k].Len == off {
		x.lost[k].Len += n
		return
	}
	x.lost = append(x.lost, Difference{What: Changed, File: name, Off: off, Len: n, Size: f.Size, Message: x.why})
}

// make returns a restored block; nil if it cannot be restored.
func (x *repairer) make(f *File, b int64) ([]byte, error) {
	if x.s.layout.parity <= 0 {
		x.why = "the seal has no parity"
		return nil, nil
	}
	no := x.s.first[f.Index] + b
	if w := no / windowBlocks; w != x.at {
		if err := x.window(w); err != nil {
			return nil, err
		}
	}
	return x.made[no], nil
}

// fileOf returns the file, and the block in it, of the block with the given number among those of all files.
func (s *Seal) fileOf(no int64) (*File, int64) {
	i := sort.Search(len(s.first), func(i int) bool { return s.first[i] > no }) - 1
	for s.files[i].blocks() == 0 {
		i--
	}
	return s.files[i], no - s.first[i]
}

// window restores all blocks of a window for which there is enough parity.
func (x *repairer) window(w int64) error {
	x.at, x.made, x.why = w, map[int64][]byte{}, ""
	blocks, count, data, parity := x.s.layout.window(w)
	shard := 0
	for j := range blocks {
		f, b := x.s.fileOf(w*windowBlocks + int64(j))
		shard = max(shard, int(min(Block, f.Size-b*Block)))
	}
	rs, err := reedsolomon.New(data, parity, reedsolomon.WithMaxGoroutines(1))
	if err != nil {
		return err
	}
	t := stripes{window: w, rs: rs, blocks: blocks, count: count, data: data, parity: parity, shard: shard,
		known: map[int]*sums{}}
	for st := range count {
		if err := x.stripe(&t, st); err != nil {
			return err
		}
	}
	return nil
}

// stripes holds the properties that the stripes of a window share.
type stripes struct {
	window       int64
	rs           reedsolomon.Encoder
	blocks       int // of the window
	count        int
	data, parity int // shards of a stripe
	shard        int // bytes of each
	known        map[int]*sums
}

// stripe restores the lost blocks of a stripe, if its parity suffices.
func (x *repairer) stripe(t *stripes, st int) error {
	shards, bad, err := x.shards(t, st)
	if err != nil || len(bad) == 0 {
		return err
	}
	have := 0
	for p := range t.parity {
		at, ok := x.s.parity[shardKey{t.window, uint32(st), uint32(p)}]
		if !ok || at.len != t.shard {
			continue
		}
		b := make([]byte, t.shard)
		if _, err := x.s.src.ReadAt(b, at.off); err != nil {
			return err
		}
		shards[t.data+p] = b
		have++
	}
	if len(bad) > have {
		x.why = fmt.Sprintf("%d blocks that share parity are changed or missing, and the parity restores at most %d "+
			"of them", len(bad), have)
		return nil
	}
	if err := t.rs.ReconstructData(shards); err != nil {
		return err
	}
	for _, no := range bad {
		f, b := x.s.fileOf(no)
		block := shards[(no-t.window*windowBlocks)/int64(t.count)][:min(Block, f.Size-b*Block)]
		if want, ok, err := t.known[f.Index].of(b); err != nil {
			return err
		} else if ok && want == sumOf(block) {
			x.made[no] = block
		} else {
			x.why = "the block restored from parity does not match its checksum"
		}
	}
	return nil
}

// shards returns the unchanged blocks of a stripe, and the numbers of the others in bad.
func (x *repairer) shards(t *stripes, st int) (shards [][]byte, bad []int64, err error) {
	shards = make([][]byte, t.data+t.parity)
	for p := range t.data {
		j := p*t.count + st
		if j >= t.blocks {
			shards[p] = make([]byte, t.shard)
			continue
		}
		f, b := x.s.fileOf(t.window*windowBlocks + int64(j))
		if t.known[f.Index] == nil {
			t.known[f.Index] = &sums{seal: x.s, file: f}
		}
		block, ok, err := x.read(f, t.known[f.Index], b)
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			bad = append(bad, t.window*windowBlocks+int64(j))
			continue
		}
		shards[p] = append(block, make([]byte, t.shard-len(block))...)
	}
	return shards, bad, nil
}
