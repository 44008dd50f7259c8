package write

import (
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"math"

	"stoa/fault"
	"stoa/format/cfile/internal/block"
	"stoa/internal/codec"
	"stoa/internal/pb"
	"stoa/internal/sum"
)

// rawRatio is the largest ratio of compressed to plain size at which a block of a v2 file is stored compressed (Kudu's
// min_compression_ratio).
const rawRatio = 0.9

// outFile writes the header, blocks and footer of a CFile, whatever its type.
//
// Source: cfile.md, "File Format", with the errata in the package comment (CRC-32C; index blocks are compressed as
// well).
type outFile struct {
	w         io.Writer
	version   int
	checksums bool
	comp      block.Compression
	codec     *codec.Codec // nil: blocks are stored as they are
	off       int64
	digest    hash.Hash // over the sizes and checksums of the blocks; nil: not needed
	packed    []byte    // the compressed block; kept to reuse its memory
}

func newOutFile(w io.Writer, o *WriterOptions) (*outFile, error) {
	out := &outFile{w: w, version: o.Version, checksums: !o.NoChecksums &&
		o.Version == 2, comp: o.Compression, digest: o.Digest}
	if o.Compression != block.NoCompression {
		c, ok := codec.ByName(o.Compression.String())
		if !ok {
			return nil, fault.Invalidf("compression %s is not known", o.Compression)
		}
		out.codec = c
	}
	return out, nil
}

func (o *outFile) magic() string {
	if o.version == 1 {
		return block.MagicV1
	}
	return block.MagicV2
}

func (o *outFile) write(p []byte) error {
	n, err := o.w.Write(p)
	o.off += int64(n)
	return err
}

// header writes magic, length and CFileHeaderPB. The message of v1 has version 1.0, that of v2 is empty.
func (o *outFile) header() error {
	var m []byte
	if o.version == 1 {
		m = pb.AppendUint(m, 1, 1) // major_version
		m = pb.AppendUint(m, 2, 0) // minor_version
	}
	b := append([]byte(nil), o.magic()...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m)))
	b = append(b, m...)
	if o.checksums {
		b = binary.LittleEndian.AppendUint32(b, sum.CRC32C(b))
	}
	return o.write(b)
}

// block writes a data, index, dictionary or bloom block and returns its position. It may append to b's memory.
func (o *outFile) block(b []byte) (block.BlockPtr, error) {
	if len(b) > math.MaxInt32-64 {
		return block.BlockPtr{}, fault.Limitf(fault.Span{}, "",
			"a block of %d bytes is longer than a CFile can point to", len(b))
	}
	stored, err := o.compress(b)
	if err != nil {
		return block.BlockPtr{}, err
	}
	if o.checksums || o.digest != nil {
		check, size := sum.CRC32C(stored), len(stored)
		if o.checksums {
			stored = binary.LittleEndian.AppendUint32(stored, check)
		}
		if o.digest != nil {
			fmt.Fprintln(o.digest, size, check)
		}
	}
	p := block.BlockPtr{Offset: o.off, Size: int64(len(stored))}
	return p, o.write(stored)
}

// compress returns the block as it is stored, with the sizes that precede compressed data:
//
//	v1   u32 compressed size, u32 uncompressed size, data
//	v2   u32 uncompressed size, data; data of just that size is not compressed
func (o *outFile) compress(b []byte) ([]byte, error) {
	if o.codec == nil {
		return b, nil
	}
	if len(b) > block.MaxUncompressed {
		return nil, fault.Limitf(fault.Span{}, "",
			"a block of %d bytes: no reader takes more than %d in a compressed file", len(b), block.MaxUncompressed)
	}
	head := 4
	if o.version == 1 {
		head = 8
	}
	out := append(o.packed[:0], make([]byte, head)...)
	out = o.codec.Compress(out, b)
	size := len(out) - head
	if o.version == 2 && (size >= len(b) || float64(size)/float64(len(b)) > rawRatio) {
		out = append(out[:head], b...)
	}
	o.packed = out
	if o.version == 1 {
		binary.LittleEndian.PutUint32(out, uint32(size))
	}
	binary.LittleEndian.PutUint32(out[head-4:], uint32(len(b)))
	return out, nil
}

// footer writes the CFileFooterPB, and magic and length after it.
func (o *outFile) footer(f *block.Footer) error {
	m := appendFooter(nil, f, o.version)
	if len(m) > block.MaxProtobuf {
		return fault.Limitf(fault.Span{}, "",
			"the footer has %d bytes of a possible %d: too much metadata or too long keys", len(m), block.MaxProtobuf)
	}
	var b []byte
	if o.checksums {
		b = make([]byte, 4)
	}
	at := len(b)
	b = append(b, m...)
	b = append(b, o.magic()...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m)))
	if o.checksums {
		binary.LittleEndian.PutUint32(b, sum.CRC32C(b[at:]))
	}
	return o.write(b)
}

// appendFooter appends the message in the order of its field numbers, as Kudu's serializer does. Fields with their
// default value are written too, except compatible_features; v1 has no features.
func appendFooter(b []byte, f *block.Footer, version int) []byte {
	b = pb.AppendUint(b, 1, uint64(f.Type))
	b = pb.AppendUint(b, 2, uint64(f.Encoding))
	b = pb.AppendUint(b, 3, uint64(f.NumValues))
	if f.PosIdx != nil {
		b = pb.AppendBytes(b, 4, pb.AppendBytes(nil, 1, appendPointer(nil, f.PosIdx)))
	}
	if f.ValIdx != nil {
		b = pb.AppendBytes(b, 5, pb.AppendBytes(nil, 1, appendPointer(nil, f.ValIdx)))
	}
	b = pb.AppendUint(b, 6, uint64(f.Compression))
	for _, m := range f.Meta {
		b = pb.AppendBytes(b, 7, pb.AppendBytes(pb.AppendBytes(nil, 1, []byte(m.Key)), 2, m.Value))
	}
	b = pb.AppendUint(b, 8, bit01(f.Nullable))
	if f.Dict != nil {
		b = pb.AppendBytes(b, 9, appendPointer(nil, f.Dict))
	}
	if version == 2 {
		b = pb.AppendUint(b, 10, uint64(f.Incompatible))
	}
	if f.Array() {
		b = pb.AppendUint(b, 12, 1) // is_type_array; always set together with the feature bit
	}
	return b
}

// appendPointer appends a BlockPointerPB.
func appendPointer(b []byte, p *block.BlockPtr) []byte {
	return pb.AppendUint(pb.AppendUint(b, 1, uint64(p.Offset)), 2, uint64(p.Size))
}

func bit01(on bool) uint64 {
	if on {
		return 1
	}
	return 0
}
