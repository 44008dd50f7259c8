package avro

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/zstd"

	"stoa/fault"
	"stoa/store"
)

const magic = "Obj\x01"

// maxBlock is the maximum size of a block in bytes, before and after decompression.
const maxBlock = 256 << 20

// File is an open container file.
type File struct {
	Schema     *Schema
	Meta       map[string][]byte // of the header
	name       string
	src        []byte
	at         int
	sync       [16]byte
	memoryLeft int64 // bytes of memory that values may still use
	maxMemory  int64
}

// maxFile is the maximum size of a file in bytes, since it is read as a whole.
const maxFile = 1 << 30

// Open reads the header of the file name. most is the maximum number of bytes of memory for its values.
func Open(ctx context.Context, tree store.Tree, name string, most int64) (*File, error) {
	src, err := tree.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	if src.Size() > min(maxFile, most) {
		return nil, fault.Limitf(fault.Span{Object: name}, "", "%d bytes, and at most %d are read (memory limit)",
			src.Size(), min(maxFile, most))
	}
	b := make([]byte, src.Size())
	if n, err := src.ReadAt(ctx, b, 0); n < len(b) {
		if err == io.EOF {
			return nil, fault.Corruptf(fault.Span{Object: name, Off: int64(n)}, "", "the file ended while it was read")
		}
		return nil, err
	}
	return Read(name, b, most)
}

// Size returns the size of the file in bytes.
func (f *File) Size() int64 { return int64(len(f.src)) }

// Read is like Open but reads b; name is used in errors.
func Read(name string, b []byte, most int64) (*File, error) {
	f := &File{Meta: map[string][]byte{}, name: name, src: b, memoryLeft: most, maxMemory: most}
	if !bytes.HasPrefix(b, []byte(magic)) {
		return nil, f.corrupt("magic", "expected %q, found %q", magic, b[:min(len(b), len(magic))])
	}
	d := decoder{b: b, at: len(magic), f: f}
	v := d.blocks(func() {
		key := string(d.bytes())
		f.Meta[key] = d.bytes()
	})
	if v && len(b)-d.at >= len(f.sync) {
		d.at += copy(f.sync[:], b[d.at:])
	} else if d.err == nil {
		d.fail("the header ends early")
	}
	if d.err != nil {
		return nil, f.corrupt("header", "%v", d.err)
	}
	f.at = d.at
	var err error
	if f.Schema, err = ParseSchema(f.Meta["avro.schema"]); err != nil {
		return nil, f.corrupt("avro.schema", "%v", err)
	}
	return f, nil
}

func (f *File) corrupt(path, format string, args ...any) error {
	return fault.Corruptf(fault.Span{Object: f.name, Off: int64(f.at), Len: int64(len(f.src) - f.at)}, path, format,
		args...)
}

// Each calls yield with each value of the file.
func (f *File) Each(yield func(v any) error) error {
	for block := 0; f.at < len(f.src); block++ {
		d := decoder{b: f.src, at: f.at, f: f}
		n, size := d.long(), d.long()
		path := fmt.Sprintf("block[%d]", block)
		if d.err != nil || n < 0 || size < 0 || size > int64(len(f.src)-d.at-len(f.sync)) {
			return f.corrupt(path, "its size, %d, reaches past the end of the file", size)
		}
		body := f.src[d.at : d.at+int(size)]
		end := d.at + int(size)
		if !bytes.Equal(f.src[end:end+len(f.sync)], f.sync[:]) {
			return f.corrupt(path+".sync", "expected %x, found %x", f.sync, f.src[end:end+len(f.sync)])
		}
		body, err := f.unpack(body)
		if errors.Is(err, errBudget) {
			return f.overBudget(path)
		}
		if err != nil {
			return f.corrupt(path, "%v", err)
		}
		in := decoder{b: body, f: f}
		for i := range n {
			v := in.value(f.Schema, 0)
			if errors.Is(in.err, errBudget) {
				return f.overBudget(path)
			}
			if in.err != nil {
				return f.corrupt(fmt.Sprintf("%s[%d]", path, i), "%v", in.err)
			}
			if err := yield(v); err != nil {
				return err
			}
		}
		if in.at != len(body) {
			return f.corrupt(path, "%d bytes are left after its %s", len(body)-in.at, fault.Count(n, "value"))
		}
		f.at = end + len(f.sync)
	}
	return nil
}

// overBudget returns the error for values that need more memory than allowed.
func (f *File) overBudget(path string) error {
	return fault.Limitf(fault.Span{Object: f.name}, path, "its values take more than %d bytes (memory limit)",
		f.maxMemory)
}

// unpack decompresses a block, to no more bytes than the memory that values may still use.
func (f *File) unpack(b []byte) ([]byte, error) {
	var r io.Reader
	switch codec := string(f.Meta["avro.codec"]); codec {
	case "", "null":
		return b, nil
	case "deflate":
		r = flate.NewReader(bytes.NewReader(b))
	case "zstandard":
		z, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxMemory(maxBlock))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		r = z
	default:
		return nil, fmt.Errorf("the codec %q is not known", codec)
	}
	limit := min(maxBlock, max(f.memoryLeft, 0)) // values need more memory than their encoded bytes
	out, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil || int64(len(out)) <= limit:
		return out, err
	case limit < maxBlock:
		return nil, errBudget
	}
	return nil, fmt.Errorf("a block has more than %d bytes", maxBlock)
}

var errBudget = errors.New("the budget is exceeded")

// decoder decodes values. After the first error it returns zeros.
type decoder struct {
	b   []byte
	at  int
	f   *File
	err error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

// takeMemory counts memory.
func (d *decoder) takeMemory(n int64) {
	if d.f.memoryLeft -= n; d.f.memoryLeft < 0 && d.err == nil {
		d.err = errBudget
	}
}

func (d *decoder) long() int64 {
	if d.err != nil {
		return 0
	}
	x, n := binary.Varint(d.b[d.at:])
	if n <= 0 {
		d.fail("byte %d: no number", d.at)
		return 0
	}
	d.at += n
	return x
}

func (d *decoder) next(n int64) []byte {
	if d.err == nil && (n < 0 || n > int64(len(d.b)-d.at)) {
		d.fail("byte %d: %d bytes are expected, %d are left", d.at, n, len(d.b)-d.at)
	}
	if d.err != nil {
		return nil
	}
	d.at += int(n)
	return d.b[d.at-int(n) : d.at]
}

func (d *decoder) bytes() []byte { return d.next(d.long()) }

// blocks reads the blocks of an array or a map; it returns false after an error.
func (d *decoder) blocks(item func()) bool {
	for d.err == nil {
		n := d.long()
		if n == 0 {
			break
		}
		if n < 0 {
			n = -n
			d.long() // size in bytes
		}
		if n < 0 || n > int64(len(d.b)) {
			d.fail("byte %d: %d items cannot be", d.at, n)
		}
		for i := int64(0); i < n && d.err == nil; i++ {
			item()
		}
	}
	return d.err == nil
}

// valueSize is the approximate size of a value in memory, in bytes.
const valueSize = 32

func (d *decoder) value(s *Schema, depth int) any {
	d.takeMemory(valueSize)
	if depth > maxDepth {
		d.fail("nested more than %d deep", maxDepth)
	}
	if d.err != nil {
		return nil
	}
	switch s.Type {
	case "null":
		return nil
	case "boolean":
		b := d.next(1)
		return len(b) == 1 && b[0] != 0
	case "int", "long":
		return d.long()
	case "float":
		if b := d.next(4); b != nil {
			return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
	case "double":
		if b := d.next(8); b != nil {
			return math.Float64frombits(binary.LittleEndian.Uint64(b))
		}
	case "bytes":
		return bytes.Clone(d.counted(d.long()))
	case "fixed":
		return bytes.Clone(d.counted(int64(s.Size)))
	case "string":
		return string(d.counted(d.long()))
	case "enum":
		if i := d.long(); i >= 0 && i < int64(len(s.Symbols)) {
			return s.Symbols[i]
		}
		d.fail("byte %d: no such symbol", d.at)
	default:
		return d.nested(s, depth)
	}
	return nil
}

func (d *decoder) counted(n int64) []byte {
	b := d.next(n)
	d.takeMemory(int64(len(b)))
	return b
}

func (d *decoder) nested(s *Schema, depth int) any {
	switch s.Type {
	case "union":
		i := d.long()
		if i < 0 || i >= int64(len(s.Union)) {
			d.fail("byte %d: no branch %d", d.at, i)
			return nil
		}
		return d.value(s.Union[i], depth+1)
	case "record":
		m := make(map[string]any, len(s.Fields))
		for _, f := range s.Fields {
			m[f.Name] = d.value(f.Type, depth+1)
		}
		return m
	case "array":
		list := []any{}
		d.blocks(func() { list = append(list, d.value(s.Items, depth+1)) })
		return list
	case "map":
		m := map[string]any{}
		d.blocks(func() {
			key := string(d.bytes())
			m[key] = d.value(s.Items, depth+1)
		})
		return m
	}
	d.fail("the type %q is not known", s.Type)
	return nil
}
