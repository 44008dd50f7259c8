// Package seal writes and checks a sidecar file of checksums, and optionally parity, for files that may have no
// checksums of their own. It shows whether files have changed, locates changes to 64 KiB, and can restore as many
// blocks as it has parity for. The file format is in docs/formats/seal.md.
package seal

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/zeebo/xxh3"
)

const (
	// Block is the number of bytes that a checksum covers.
	Block   = 64 << 10
	version = 1

	magic  = "STOASEAL"
	marker = "\x8eSTOAREC"

	headLen = len(marker) + 8 // marker, kind, length
	sumLen  = 16
	maxLen  = 1 << 20 // of a record's payload
)

// The kinds of records.
const (
	kindHead = "HEAD"
	kindFile = "FILE"
	kindHash = "HASH"
	kindDone = "DONE"
	kindTabl = "TABL"
	kindPrty = "PRTY"
	kindTail = "TAIL"
)

// Sum is an XXH3 checksum of 128 bits, big-endian.
type Sum [sumLen]byte

func sumOf(b []byte) Sum { return xxh3.Hash128(b).Bytes() }

func (s Sum) String() string { return fmt.Sprintf("%x", s[:]) }

// head is the first record.
type head struct {
	Version int      `json:"version"`
	Block   int      `json:"block"`
	Parity  float64  `json:"parity"` // percentage of the blocks
	Roots   []string `json:"roots"`  // the last elements of the paths that were sealed
	Files   int      `json:"files"`
	Bytes   int64    `json:"bytes"`
}

// Kinds of files.
const (
	Regular = "file"
	Link    = "link"    // the target is recorded and not followed
	Special = "special" // a pipe, socket or device: listed but not read
)

// File is a sealed file.
type File struct {
	Index int    `json:"index"`
	Root  int    `json:"root"`
	Name  string `json:"name"` // below the root, with slashes; "." is the root itself
	Kind  string `json:"kind"`
	Size  int64  `json:"size"`
	Link  string `json:"link,omitempty"`
}

// exactFile is File plus the names that are not UTF-8, which JSON cannot represent as text, as bytes in base64.
type exactFile struct {
	plainFile
	NameBytes []byte `json:"name_bytes,omitempty"`
	LinkBytes []byte `json:"link_bytes,omitempty"`
}

type plainFile File

// MarshalJSON writes a name that is not UTF-8 also as bytes, because its text has U+FFFD for each invalid byte.
func (f File) MarshalJSON() ([]byte, error) {
	return json.Marshal(exactFile{plainFile(f), notText(f.Name), notText(f.Link)})
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (f *File) UnmarshalJSON(b []byte) error {
	var e exactFile
	if err := json.Unmarshal(b, &e); err != nil {
		return err
	}
	*f = File(e.plainFile)
	f.Name, f.Link = exactText(f.Name, e.NameBytes), exactText(f.Link, e.LinkBytes)
	return nil
}

// notText returns the bytes of a string that is not UTF-8, nil if it is UTF-8.
func notText(s string) []byte {
	if utf8.ValidString(s) {
		return nil
	}
	return []byte(s)
}

// exactText is the inverse of notText: it returns b as a string, or text if b is nil.
func exactText(text string, b []byte) string {
	if b != nil {
		return string(b)
	}
	return text
}

func (f *File) blocks() int64 {
	if f.Kind != Regular {
		return 0
	}
	return blocksOf(f.Size)
}

func blocksOf(size int64) int64 { return size/Block + min(1, size%Block) }

// done is the record that ends a file, with the checksum over its blocks' checksums.
type done struct {
	Index  int    `json:"index"`
	Digest string `json:"digest"`
}

// Table is the contents of a table at the time it was sealed.
type Table struct {
	Root    int           `json:"root"`
	Table   string        `json:"table"` // the part after #; "" if the root is the table
	Format  string        `json:"format"`
	Rows    int64         `json:"rows"`
	Sum     string        `json:"sum"` // over whole rows
	Columns []TableColumn `json:"columns"`
	Problem string        `json:"problem,omitempty"` // why it could not be read
}

type exactTable struct {
	plainTable
	TableBytes []byte `json:"table_bytes,omitempty"`
}

type plainTable Table

// MarshalJSON writes a name that is not UTF-8 also as bytes.
func (t Table) MarshalJSON() ([]byte, error) {
	return json.Marshal(exactTable{plainTable(t), notText(t.Table)})
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (t *Table) UnmarshalJSON(b []byte) error {
	var e exactTable
	if err := json.Unmarshal(b, &e); err != nil {
		return err
	}
	*t = Table(e.plainTable)
	t.Table = exactText(t.Table, e.TableBytes)
	return nil
}

// TableColumn is a column of a Table: its type, and the sum over its cells.
type TableColumn struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Nulls int64  `json:"nulls"`
	Sum   string `json:"sum"`
}

// tail is the last record: the number of preceding records, and the checksum over their checksums.
type tail struct {
	Records int    `json:"records"`
	Digest  string `json:"digest"`
}

// recorder writes records.
type recorder struct {
	w    io.Writer
	buf  bytes.Buffer
	n    int
	sums *xxh3.Hasher
	size int64
}

func newRecorder(w io.Writer) (*recorder, error) {
	n, err := io.WriteString(w, magic)
	return &recorder{w: w, sums: xxh3.New(), size: int64(n)}, err
}

func (r *recorder) put(kind string, parts ...[]byte) error {
	r.buf.Reset()
	r.buf.WriteString(marker)
	r.buf.WriteString(kind)
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	_ = binary.Write(&r.buf, binary.LittleEndian, uint32(n))
	for _, p := range parts {
		r.buf.Write(p)
	}
	sum := sumOf(r.buf.Bytes()[len(marker):])
	r.buf.Write(sum[:])
	r.n++
	r.sums.Write(sum[:])
	k, err := r.w.Write(r.buf.Bytes())
	r.size += int64(k)
	return err
}

func (r *recorder) putJSON(kind string, v any) error {
	b, err := json.Marshal(v)
	if err == nil && len(b) > maxLen {
		err = fmt.Errorf("a record of a seal has at most %d bytes, this one would have %d", maxLen, len(b))
	}
	if err != nil {
		return err
	}
	return r.put(kind, b)
}

func (r *recorder) end() error {
	return r.putJSON(kindTail, tail{r.n, fmt.Sprintf("%x", r.sums.Sum128().Bytes())})
}

// layout is the arrangement of parity. The blocks of all files, one after another, are divided into windows. Within a
// window, neighbouring blocks belong to different stripes, so that contiguous damage is spread over many stripes.
type layout struct {
	parity float64
	total  int64 // blocks
}

const (
	stripeBlocks = 100 // of data in a stripe, at most
	maxStripes   = 16  // in a window
	windowBlocks = stripeBlocks * maxStripes
)

// window returns the geometry of a window: its number of blocks, the number of stripes, and the data and parity blocks
// of each.
func (l layout) window(w int64) (blocks, stripes, data, parity int) {
	blocks = int(min(windowBlocks, l.total-w*windowBlocks))
	if blocks <= 0 || l.parity <= 0 {
		return max(0, blocks), 0, 0, 0
	}
	stripes = (blocks + stripeBlocks - 1) / stripeBlocks
	data = (blocks + stripes - 1) / stripes
	parity = int(float64(data)*l.parity/100 + 0.999999)
	return blocks, stripes, data, max(1, parity)
}
