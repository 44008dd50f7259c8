package delta

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path"
	"sync"

	"stoa/fault"
	"stoa/format"
	"stoa/format/delta/internal/log"
	"stoa/format/internal/lake"
	"stoa/internal/roaring"
)

// The magic numbers of deletion vectors: little-endian in the portable form, big-endian in Spark's own.
const (
	vectorMagic = 1681511377
	nativeMagic = 1681511376
)

// maxVector is the maximum size of a deletion vector in bytes.
const maxVector = 256 << 20

// deleted returns a function for lake.Input that reads a vector once.
func (op *versionReader) deleted(v *log.Vector) func(context.Context) ([]int64, error) {
	var mu sync.Mutex
	var rows []int64
	return func(ctx context.Context) (_ []int64, err error) {
		mu.Lock()
		defer mu.Unlock()
		if rows == nil {
			rows, err = op.vector(ctx, v)
		}
		return rows, err
	}
}

// vector returns the rows that a deletion vector deletes.
func (op *versionReader) vector(ctx context.Context, v *log.Vector) ([]int64, error) {
	at := fault.Span{Object: path.Join(op.dir, log.Dir)}
	var b []byte
	var err error
	if v.Cardinality < 0 || v.Size < 0 || v.Size > maxVector {
		return nil, fault.Corruptf(at, "deletionVector", "expected at most %d bytes and a number of rows, found %d "+
			"bytes and %s", maxVector,
			v.Size, fault.Count(v.Cardinality, "row"))
	}
	switch v.Storage {
	case "i":
		if b, err = decode85(v.Path); err != nil {
			return nil, fault.Corruptf(at, "deletionVector", "%v", err)
		}
		b = b[:min(int64(len(b)), v.Size)]
	case "u", "p":
		b, at, err = op.storedVector(ctx, v)
	default:
		return nil, fault.Unsupportedf(at, "deletionVector.storageType", "expected u, p or i, found %q", v.Storage)
	}
	if err != nil {
		return nil, err
	}
	if len(b) >= 8 && binary.BigEndian.Uint32(b) == nativeMagic {
		b = portable(b)
	}
	if len(b) < 4 || binary.LittleEndian.Uint32(b) != vectorMagic {
		return nil, fault.Corruptf(at, "deletionVector.magic", "expected %d, found % x", vectorMagic, b[:min(4,
			len(b))])
	}
	rows, err := roaring.Decode(b[4:], v.Cardinality)
	if err != nil {
		return nil, fault.Corruptf(at, "deletionVector", "%v", err)
	}
	if int64(len(rows)) != v.Cardinality {
		return nil, fault.Corruptf(at, "deletionVector", "expected %d deleted rows, found %d", v.Cardinality, len(rows))
	}
	return rows, op.memory.Take(int64(8*len(rows)), at, "deleted rows")
}

// portable converts a vector in Spark's own form to the portable one: big-endian, the number of bitmaps, and each
// bitmap preceded by its size. Surplus bytes are kept, so that they are noticed.
func portable(b []byte) []byte {
	n := binary.BigEndian.Uint32(b[4:])
	out := binary.LittleEndian.AppendUint32(nil, vectorMagic)
	out = binary.LittleEndian.AppendUint64(out, uint64(n))
	b = b[8:]
	for key := uint32(0); key < n && len(b) >= 4; key++ {
		size := min(uint64(binary.BigEndian.Uint32(b)), uint64(len(b)-4))
		out = append(binary.LittleEndian.AppendUint32(out, key), b[4:4+size]...)
		b = b[4+size:]
	}
	return append(out, b...)
}

// vectorFile returns the file of a vector: by its path, or by a UUID, encoded in the last 20 characters.
func (op *versionReader) vectorFile(v *log.Vector) (string, error) {
	if v.Storage == "p" {
		return op.name(v.Path)
	}
	const encoded = 20
	at := fault.Span{Object: path.Join(op.dir, log.Dir)}
	if len(v.Path) < encoded {
		return "", fault.Corruptf(at, "deletionVector.pathOrInlineDv", "expected a UUID of %d characters, found %q",
			encoded, v.Path)
	}
	prefix := v.Path[:len(v.Path)-encoded]
	id, err := decode85(v.Path[len(prefix):])
	if err != nil {
		return "", fault.Corruptf(at, "deletionVector.pathOrInlineDv", "%v", err)
	}
	name := fmt.Sprintf("deletion_vector_%x-%x-%x-%x-%x.bin", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	return op.name(path.Join(prefix, name))
}

// storedVector reads a deletion vector from a file: its length and, after it, a CRC-32, both big-endian.
func (op *versionReader) storedVector(ctx context.Context, v *log.Vector) ([]byte, fault.Span, error) {
	at := fault.Span{Object: path.Join(op.dir, log.Dir)}
	if v.Offset == nil {
		return nil, at, fault.Corruptf(at, "deletionVector.offset", "expected an offset, found none")
	}
	file, err := op.vectorFile(v)
	if err != nil {
		return nil, at, err
	}
	src, err := op.tree.Open(ctx, file)
	if err != nil {
		return nil, at, lake.Missing(err, file, "the log")
	}
	defer src.Close()
	at = fault.Span{Object: file, Off: *v.Offset, Len: v.Size + 8}
	if at.Off < 0 || at.End() > src.Size() {
		return nil, at, fault.Corruptf(at, "deletionVector", "it reaches past the end of the file (%d)", src.Size())
	}
	b := make([]byte, at.Len)
	if err := format.ReadFull(ctx, src, at, "deletionVector", b); err != nil {
		return nil, at, err
	}
	if n := binary.BigEndian.Uint32(b); int64(n) != v.Size {
		return nil, at, fault.Corruptf(at, "deletionVector.length", "expected %d, found %d", v.Size, n)
	}
	data := b[4 : len(b)-4]
	stored, computed := binary.BigEndian.Uint32(b[len(b)-4:]), crc32.ChecksumIEEE(data)
	if stored != computed && !op.o.NoVerify {
		return nil, at, fault.Corruptf(at, "deletionVector.checksum", "expected 0x%08x, computed 0x%08x", stored,
			computed)
	}
	return data, at, nil
}

// alphabet85 is the alphabet of Z85.
const alphabet85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

// decode85 decodes Z85: five characters are four bytes.
func decode85(s string) ([]byte, error) {
	if len(s)%5 != 0 {
		return nil, errors.New("not Z85: the length is not a multiple of five")
	}
	var values [256]int
	for i := range values {
		values[i] = -1
	}
	for i := range len(alphabet85) {
		values[alphabet85[i]] = i
	}
	out := make([]byte, 0, len(s)/5*4)
	for ; s != ""; s = s[5:] {
		n := uint64(0)
		for i := range 5 {
			v := values[s[i]]
			if v < 0 {
				return nil, fmt.Errorf("not Z85: it has the character %q", s[i])
			}
			n = n*85 + uint64(v)
		}
		if n > 1<<32-1 {
			return nil, errors.New("not Z85: five characters make more than 32 bits")
		}
		out = binary.BigEndian.AppendUint32(out, uint32(n))
	}
	return out, nil
}
