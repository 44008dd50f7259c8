package seal

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/zeebo/xxh3"
)

// Problem is a part of a seal that cannot be used: Len bytes from Off on (0 and 0 if it has no single place).
type Problem struct {
	Off, Len int64
	Reason   string
}

// Seal is an open seal.
type Seal struct {
	src      io.ReaderAt
	head     head
	files    []*File
	byName   map[fileKey]*File
	digests  map[int]string
	hashed   map[int]map[int64]span // by file: the records of its checksums, by their first block
	tables   []Table
	parity   map[shardKey]span
	layout   layout
	first    []int64 // by file: its first block among those of all files
	Problems []Problem
	lostSums []*File // files with lost checksums
	whole    bool    // all sealed files are known
}

type fileKey struct {
	root int
	name string
}

type shardKey struct {
	window        int64
	stripe, shard uint32
}

// span is a payload in the seal.
type span struct {
	off int64
	len int
}

// Open reads a seal of size bytes, which src must serve for as long as the Seal is used. Damaged parts of it are listed
// in Problems; it is an error only if no part of it can be used.
func Open(src io.ReaderAt, size int64) (*Seal, error) {
	s := &Seal{src: src, byName: map[fileKey]*File{}, digests: map[int]string{}, hashed: map[int]map[int64]span{},
		parity: map[shardKey]span{}}
	if err := s.scan(size); err != nil {
		return nil, err
	}
	return s, s.checkRecords()
}

func (s *Seal) problem(off, n int64, format string, args ...any) {
	s.Problems = append(s.Problems, Problem{off, n, fmt.Sprintf(format, args...)})
}

// scan reads all records. After damage it resumes at the next marker.
func (s *Seal) scan(size int64) error {
	b := make([]byte, len(magic))
	if _, err := s.src.ReadAt(b, 0); err != nil || string(b) != magic {
		if err != nil && err != io.EOF {
			return err
		}
		s.problem(0, int64(len(magic)), "it does not begin with %q", magic)
	}
	sums, n, ended := xxh3.New(), 0, false
	found := map[int]*File{}
	buf := make([]byte, headLen+maxLen+sumLen)
	for off := int64(len(magic)); off < size; {
		b, err := s.record(buf, off, size)
		if err != nil {
			next, err2 := s.next(off+1, size)
			if err2 != nil {
				return err2
			}
			s.problem(off, next-off, "%v", err)
			off = next
			continue
		}
		kind, payload, sum := string(b[len(marker):len(marker)+4]), b[headLen:len(b)-sumLen], b[len(b)-sumLen:]
		if ended {
			s.problem(off, size-off, "something follows its end")
		}
		if kind == kindTail {
			ended = true
			var t tail
			if json.Unmarshal(payload, &t) != nil || t.Records != n ||
				t.Digest != fmt.Sprintf("%x", sums.Sum128().Bytes()) {
				s.problem(off, int64(len(b)), "records are missing, or were exchanged")
			}
		} else if err := s.take(kind, payload, span{off + int64(headLen), len(payload)}, found); err != nil {
			s.problem(off, int64(len(b)), "%v", err)
		}
		sums.Write(sum)
		n++
		off += int64(len(b))
	}
	if !ended {
		s.problem(size, 0, "it was cut: its end is missing")
	}
	s.files = make([]*File, 0, len(found))
	for _, f := range found {
		s.files = append(s.files, f)
	}
	return nil
}

// record reads the record at off into buf.
func (s *Seal) record(buf []byte, off, size int64) ([]byte, error) {
	if size-off < int64(headLen+sumLen) {
		return nil, fmt.Errorf("%d bytes are no record", size-off)
	}
	if _, err := s.src.ReadAt(buf[:headLen], off); err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(buf[headLen-4:]))
	switch {
	case string(buf[:len(marker)]) != marker:
		return nil, fmt.Errorf("no record begins here")
	case n > maxLen || int64(headLen)+n+sumLen > size-off:
		return nil, fmt.Errorf("a record of %d bytes reaches past the end, or is too long", n)
	}
	b := buf[:int64(headLen)+n+sumLen]
	if _, err := s.src.ReadAt(b[headLen:], off+int64(headLen)); err != nil {
		return nil, err
	}
	if sum := sumOf(b[len(marker) : len(b)-sumLen]); !bytes.Equal(sum[:], b[len(b)-sumLen:]) {
		return nil, fmt.Errorf("the checksum of a record does not match its bytes")
	}
	return b, nil
}

// next finds the next marker, or the end.
func (s *Seal) next(off, size int64) (int64, error) {
	const piece = 1 << 20
	buf := make([]byte, piece+len(marker))
	for ; off < size; off += piece {
		b := buf[:min(int64(len(buf)), size-off)]
		if _, err := s.src.ReadAt(b, off); err != nil && err != io.EOF {
			return 0, err
		}
		if i := bytes.Index(b, []byte(marker)); i >= 0 {
			return off + int64(i), nil
		}
	}
	return size, nil
}

// take stores the contents of a record. The second copy of a record is ignored.
func (s *Seal) take(kind string, b []byte, at span, found map[int]*File) error {
	switch kind {
	case kindHead:
		var h head
		if err := json.Unmarshal(b, &h); err != nil {
			return err
		}
		if h.Version != version || h.Block != Block {
			return fmt.Errorf("version %d with blocks of %d bytes is not supported", h.Version, h.Block)
		}
		if !(h.Parity >= 0 && h.Parity <= 100) || len(h.Roots) == 0 {
			return fmt.Errorf("parity of %v %% for %d places", h.Parity, len(h.Roots))
		}
		s.head = h
	case kindFile:
		var f File
		if err := json.Unmarshal(b, &f); err != nil {
			return err
		}
		return s.takeFile(&f, found)
	case kindHash:
		return s.takeSums(b, at)
	case kindDone:
		var d done
		if err := json.Unmarshal(b, &d); err != nil {
			return err
		}
		s.digests[d.Index] = d.Digest
	case kindTabl:
		var t Table
		if err := json.Unmarshal(b, &t); err != nil {
			return err
		}
		same := func(o Table) bool { return o.Root == t.Root && o.Table == t.Table }
		if !slices.ContainsFunc(s.tables, same) {
			s.tables = append(s.tables, t)
		}
	case kindPrty:
		if len(b) < 16 || len(b) > 16+Block {
			return fmt.Errorf("%d bytes of parity", len(b))
		}
		s.parity[shardKey{int64(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint32(b[8:]),
			binary.LittleEndian.Uint32(b[12:])}] = span{at.off + 16, at.len - 16}
	default:
		return fmt.Errorf("records of kind %q are not supported", kind)
	}
	return nil
}

func (s *Seal) takeFile(f *File, found map[int]*File) error {
	if err := f.check(len(s.head.Roots)); err != nil || f.Index < 0 || f.Index >= s.head.Files {
		return fmt.Errorf("file %d of %d: %v", f.Index, s.head.Files, err)
	}
	if known := s.byName[fileKey{f.Root, f.Name}]; known != nil && *known != *f || found[f.Index] != nil &&
		*found[f.Index] != *f {
		return fmt.Errorf("%s is there twice", f.Name)
	}
	found[f.Index], s.byName[fileKey{f.Root, f.Name}] = f, f
	return nil
}

// takeSums records the positions of the checksums of a file's blocks.
func (s *Seal) takeSums(b []byte, at span) error {
	if len(b) < hashHead || (len(b)-hashHead)%sumLen != 0 {
		return fmt.Errorf("%d bytes of checksums", len(b))
	}
	file, first := int(binary.LittleEndian.Uint32(b)), int64(binary.LittleEndian.Uint64(b[4:]))
	if first < 0 || first%maxHashes != 0 {
		return fmt.Errorf("checksums from block %d on", first)
	}
	if s.hashed[file] == nil {
		s.hashed[file] = map[int64]span{}
	}
	s.hashed[file][first] = at
	return nil
}

// checkRecords compares the records with each other: afterwards every known file has a checksum for each of its blocks,
// or none at all.
func (s *Seal) checkRecords() error {
	if s.head.Version == 0 {
		return fmt.Errorf("no seal: nothing of it says what was sealed")
	}
	slices.SortFunc(s.files, func(a, b *File) int { return a.Index - b.Index })
	s.whole = len(s.files) == s.head.Files
	if !s.whole {
		s.problem(0, 0, "%d of %d files are known", len(s.files), s.head.Files)
	}
	for i, f := range s.files {
		if f.Index != i {
			break
		}
		if f.blocks() > math.MaxInt64/Block-s.layout.total {
			return fmt.Errorf("no seal: its files have more bytes than there can be")
		}
		s.first = append(s.first, s.layout.total)
		s.layout.total += f.blocks()
	}
	if s.whole {
		s.layout.parity = s.head.Parity
	}
	for _, f := range s.files {
		have := int64(0)
		for first, at := range s.hashed[f.Index] {
			n := int64(at.len-hashHead) / sumLen
			if want := min(maxHashes, f.blocks()-first); n != want {
				s.problem(at.off, int64(at.len), "%s: expected %d checksums from block %d on, got %d", f.Name, want,
					first, n)
				delete(s.hashed[f.Index], first)
				continue
			}
			have += n
		}
		if have < f.blocks() {
			s.lostSums = append(s.lostSums, f)
			s.problem(0, 0, "%s: the checksums of %d of %d blocks are lost", f.Name, f.blocks()-have, f.blocks())
		}
	}
	return nil
}

// Roots returns the last elements of the paths that were sealed.
func (s *Seal) Roots() []string { return s.head.Roots }

// Files returns the sealed files, as far as the seal can be read.
func (s *Seal) Files() []*File { return s.files }

// Tables returns the sealed tables.
func (s *Seal) Tables() []Table { return s.tables }

// Parity returns the percentage of blocks that can be restored, 0 to 100.
func (s *Seal) Parity() float64 { return s.head.Parity }

// sums reads checksums of a file, record by record.
type sums struct {
	seal  *Seal
	file  *File
	first int64 // of buf
	buf   []byte
}

// of returns the checksum of a block; ok is false if it is lost.
func (x *sums) of(block int64) (sum Sum, ok bool, err error) {
	from := block / maxHashes * maxHashes
	if x.buf == nil || x.first != from {
		at, ok := x.seal.hashed[x.file.Index][from]
		if !ok {
			return sum, false, nil
		}
		x.buf, x.first = make([]byte, at.len-hashHead), from
		if _, err := x.seal.src.ReadAt(x.buf, at.off+hashHead); err != nil {
			x.buf = nil
			return sum, false, err
		}
	}
	return Sum(x.buf[(block-from)*sumLen:]), true, nil
}
