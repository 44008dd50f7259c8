package seal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/klauspost/reedsolomon"
	"github.com/zeebo/xxh3"
)

// Options select the contents of a seal.
type Options struct {
	Parity float64 // percentage of blocks that can be restored, at most 100; 0 for none
	Tables []Table
}

// Summary describes what was sealed.
type Summary struct {
	Files   int
	Special []string // pipes, sockets and devices, which were not read
	Bytes   int64    // of the files
	Size    int64    // of the seal
}

// ErrChanged is wrapped by errors about a file that changed while it was being sealed.
var ErrChanged = errors.New("it was changed while it was sealed")

// secondCopy is the maximum size in bytes of the checksums that are kept in order to write them a second time.
const secondCopy = 64 << 20

// Write seals files as listed by Walk. It reads each of them once, in order. If a file changes meanwhile, the error
// wraps ErrChanged, and the output is useless.
func Write(ctx context.Context, out io.Writer, p Places, files []File, o Options) (Summary, error) {
	w := &writer{places: p, files: files, o: o}
	h := head{Version: version, Block: Block, Parity: o.Parity, Files: len(files), Roots: []string{}}
	for _, r := range p.Roots {
		h.Roots = append(h.Roots, filepath.Base(filepath.Clean(r)))
	}
	for i := range files {
		h.Bytes += files[i].Size
		w.layout.total += files[i].blocks()
	}
	w.layout.parity = o.Parity
	w.head = h
	var err error
	if w.rec, err = newRecorder(out); err != nil {
		return Summary{}, err
	}
	if err := w.index(); err != nil {
		return Summary{}, err
	}
	for i := range files {
		if err := w.file(ctx, &files[i]); err != nil {
			return Summary{}, err
		}
	}
	if err := w.endWindow(); err != nil {
		return Summary{}, err
	}
	if err := w.writeSecondCopy(); err != nil {
		return Summary{}, err
	}
	s := Summary{Files: len(files), Bytes: h.Bytes}
	for i := range files {
		if files[i].Kind == Special {
			s.Special = append(s.Special, files[i].label(p.Roots))
		}
	}
	err = w.rec.end()
	s.Size = w.rec.size
	return s, err
}

type writer struct {
	places Places
	files  []File
	o      Options
	head   head
	rec    *recorder
	layout layout

	block  int64 // the next block, among those of all files
	parity [][][]byte
	rs     reedsolomon.Encoder
	shape  [2]int // of rs
	shard  int    // bytes of the window's parity blocks

	kept  [][]byte // payloads of HASH and DONE
	kinds []string
	bytes int
}

// index writes the information that is known before the files are read.
func (w *writer) index() error {
	if err := w.rec.putJSON(kindHead, w.head); err != nil {
		return err
	}
	for i := range w.files {
		if err := w.rec.putJSON(kindFile, &w.files[i]); err != nil {
			return err
		}
	}
	for i := range w.o.Tables {
		if err := w.rec.putJSON(kindTabl, &w.o.Tables[i]); err != nil {
			return err
		}
	}
	return nil
}

// keep writes a record and keeps it for the second copy.
func (w *writer) keep(kind string, payload []byte) error {
	if w.bytes += len(payload); w.bytes <= secondCopy {
		w.kept, w.kinds = append(w.kept, payload), append(w.kinds, kind)
	}
	return w.rec.put(kind, payload)
}

// writeSecondCopy writes the index and the checksums again, so that damage in one place of the seal does not destroy
// them.
func (w *writer) writeSecondCopy() error {
	if err := w.index(); err != nil || w.bytes > secondCopy {
		return err
	}
	for i, b := range w.kept {
		if err := w.rec.put(w.kinds[i], b); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) file(ctx context.Context, f *File) error {
	if f.Kind != Regular {
		return nil
	}
	in, err := w.places.open(ctx, f)
	if err != nil {
		return err
	}
	defer in.Close()
	changed := fmt.Errorf("%s: %w", f.label(w.places.Roots), ErrChanged)
	if in.size != f.Size {
		return changed
	}
	h := newHashes(f, w.keep)
	err = eachBlock(ctx, in, f.Size, func(b []byte) error {
		if err := h.add(sumOf(b)); err != nil {
			return err
		}
		return w.protect(b)
	})
	if err == io.ErrUnexpectedEOF {
		return changed
	}
	if err != nil {
		return err
	}
	if same, err := in.same(); err != nil {
		return err
	} else if !same {
		return changed
	}
	return h.end()
}

// eachBlock reads size bytes and calls f with each block; io.ErrUnexpectedEOF if there are fewer.
func eachBlock(ctx context.Context, in io.Reader, size int64, f func(b []byte) error) error {
	buf := make([]byte, min(16*Block, max(1, size)))
	for left := size; left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := buf[:min(int64(len(buf)), left)]
		if _, err := io.ReadFull(in, b); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		left -= int64(len(b))
		for len(b) > 0 {
			n := min(Block, len(b))
			if err := f(b[:n]); err != nil {
				return err
			}
			b = b[n:]
		}
	}
	return nil
}

// hashes collects the checksums of a file's blocks.
type hashes struct {
	file  *File
	keep  func(kind string, payload []byte) error
	first int64
	buf   []byte
	all   *xxh3.Hasher
}

const hashHead, maxHashes = 12, 4096 // bytes before the checksums in a record, and how many it has

func newHashes(f *File, keep func(string, []byte) error) *hashes {
	return &hashes{file: f, keep: keep, all: xxh3.New()}
}

func (h *hashes) add(s Sum) error {
	h.all.Write(s[:])
	if h.buf == nil {
		h.buf = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(nil, uint32(h.file.Index)),
			uint64(h.first))
	}
	h.buf = append(h.buf, s[:]...)
	h.first++
	if len(h.buf) == hashHead+maxHashes*sumLen {
		return h.flush()
	}
	return nil
}

func (h *hashes) flush() error {
	b := h.buf
	h.buf = nil
	if b == nil {
		return nil
	}
	return h.keep(kindHash, b)
}

func (h *hashes) end() error {
	if err := h.flush(); err != nil {
		return err
	}
	return h.keep(kindDone, fmt.Appendf(nil, `{"index":%d,"digest":"%s"}`, h.file.Index, digest(h.all, h.file.Size)))
}

// digest returns the digest of a file: over its blocks' checksums and its size.
func digest(all *xxh3.Hasher, size int64) string {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(size))
	all.Write(b[:])
	return fmt.Sprintf("%x", all.Sum128().Bytes())
}

// protect adds a block to the parity of its stripe.
func (w *writer) protect(b []byte) error {
	if w.layout.parity <= 0 {
		return nil
	}
	at := int(w.block % windowBlocks)
	_, stripes, data, parity := w.layout.window(w.block / windowBlocks)
	if at == 0 {
		if err := w.endWindow(); err != nil {
			return err
		}
		if w.shape != [2]int{data, parity} {
			rs, err := reedsolomon.New(data, parity, reedsolomon.WithMaxGoroutines(1))
			if err != nil {
				return err
			}
			w.rs, w.shape = rs, [2]int{data, parity}
		}
		w.parity = make([][][]byte, stripes)
		for s := range w.parity {
			w.parity[s] = make([][]byte, parity)
			for p := range w.parity[s] {
				w.parity[s][p] = make([]byte, Block)
			}
		}
	}
	w.block++
	w.shard = max(w.shard, len(b))
	if len(b) < Block {
		b = append(append(make([]byte, 0, Block), b...), make([]byte, Block-len(b))...)
	}
	return w.rs.EncodeIdx(b, at/stripes, w.parity[at%stripes])
}

// endWindow writes the parity of a window. Parity blocks are as long as the longest data block; shorter ones count as
// padded with zeros.
func (w *writer) endWindow() error {
	no := (w.block - 1) / windowBlocks
	for s, stripe := range w.parity {
		for p, b := range stripe {
			at := binary.LittleEndian.AppendUint64(nil, uint64(no))
			at = binary.LittleEndian.AppendUint32(at, uint32(s))
			at = binary.LittleEndian.AppendUint32(at, uint32(p))
			if err := w.rec.put(kindPrty, at, b[:w.shard]); err != nil {
				return err
			}
		}
	}
	w.parity, w.shard = nil, 0
	return nil
}
