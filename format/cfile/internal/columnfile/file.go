package columnfile

import (
	"context"
	"fmt"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/internal/budget"
	"stoa/internal/codec"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

// File is an open CFile: its header and footer, and the source of its blocks.
type File struct {
	Src      store.Source
	At       fault.Span // the whole CFile; offsets of blocks are relative to its beginning
	Header   block.Header
	Footer   block.Footer
	Head     []byte       // the bytes of the header, with its checksum
	Foot     []byte       // the bytes of the footer, with its checksum
	Codec    *codec.Codec // nil: blocks are not compressed
	Limits   format.Limits
	NoVerify bool // checksums are not verified
	Endless  bool // recovery: the row at which the last block ends is unknown
	Stated   bool // recovery: the last block is damaged, but its header confirms the footer's number of values
	Unproven bool // recovery: the footer is lost, or its checksum is wrong
	nodes    nodes
	taken    *budget.Memory // by opening it
}

// perFile is the memory in bytes that an open file is estimated to need besides its header and footer.
const perFile = 4 << 10

const (
	readHead = 512      // bytes of the beginning that are read first, if the file is longer than readTail
	readTail = 64 << 10 // bytes of the end that are read first; a longer footer takes a second read
)

// OpenFile reads footer and header of the CFile that is the part at of src. f is never nil; with an error it holds what
// could be parsed. The error is Corrupt, Unsupported, Limit, or that of reading.
func OpenFile(ctx context.Context, src store.Source, at fault.Span, o format.OpenOptions) (f *File, err error) {
	f = &File{Src: src, At: at, Limits: o.Limits.WithDefaults(), NoVerify: o.NoVerify}
	f.taken = f.Limits.Memory()
	if err := f.taken.Take(perFile, at, ""); err != nil {
		return f, err
	}
	if at.Len < block.MinFile {
		return f, fault.Corruptf(at, "", "%d bytes are too few for a CFile", at.Len)
	}
	n := min(at.Len, readTail)
	end := make([]byte, n)
	if err := format.ReadFull(ctx, src, at.Sub(at.Len-n, n), "footer", end); err != nil {
		return f, err
	}
	footErr := f.readFooter(ctx, end)
	if err := f.readHeader(ctx, end, footErr == nil && f.Footer.Checksums()); err != nil && footErr == nil {
		return f, err
	}
	if o.Tracer != nil {
		f.TraceHeader(o.Tracer)
		f.TraceFooter(o.Tracer)
	}
	if footErr != nil {
		return f, footErr
	}
	return f, f.Resolve()
}

// Resolve sets the codec from the footer, and checks the footer's index pointers. The error is Unsupported or Corrupt.
func (f *File) Resolve() (err error) {
	if f.Codec, err = block.CodecOf(f.Footer.Compression); err != nil {
		return err
	}
	if reason := block.CheckIndexes(&f.Footer); reason != "" {
		return fault.Corruptf(f.FootSpan(), "footer", "%s", reason)
	}
	return nil
}

// HeadSpan is the span of the header.
func (f *File) HeadSpan() fault.Span { return f.At.Sub(0, int64(len(f.Head))) }

// FootSpan is the span of the footer.
func (f *File) FootSpan() fault.Span {
	return f.At.Sub(f.At.Len-int64(len(f.Foot)), int64(len(f.Foot)))
}

// readFooter parses the footer in end, the last bytes of the file, or reads more of them.
func (f *File) readFooter(ctx context.Context, end []byte) error {
	c := wire.NewCursor(end[len(end)-block.Tail:], f.At.Sub(f.At.Len-block.Tail, block.Tail), "footer")
	_, n := block.ParseTail(c)
	if c.Err() != nil {
		f.Foot = end[len(end)-block.Tail:]
		return c.Err()
	}
	size := int64(n + block.Tail)
	if size+4 > f.At.Len {
		return fault.Corruptf(f.At.Sub(f.At.Len-4, 4), "footer.length", "%d bytes do not fit in a file of %d", n,
			f.At.Len)
	}
	if err := f.takeMemory(size, "footer"); err != nil {
		return err
	}
	if size+4 > int64(len(end)) {
		end = make([]byte, size+4)
		if err := format.ReadFull(ctx, f.Src, f.At.Sub(f.At.Len-size-4, size+4), "footer", end); err != nil {
			return err
		}
	}
	f.Foot = end[int64(len(end))-size:]
	c = wire.NewCursor(f.Foot, f.FootSpan(), "footer").Within(f.taken)
	f.Footer, _ = block.ParseFooter(c, false)
	if f.Footer.Checksums() {
		f.Foot = end[int64(len(end))-size-4:]
		_, fr := block.ParseFooter(wire.NewCursor(f.Foot, f.FootSpan(), "footer"), true)
		if fr.Stored != fr.Computed && !f.NoVerify {
			return ChecksumError(f.FootSpan(), "footer.checksum", fr)
		}
	}
	if err := block.Support(&f.Footer, f.FootSpan()); err != nil &&
		(c.Err() == nil || f.Footer.Incompatible&^block.FeaturesKnown != 0) {
		return err
	}
	return c.Err()
}

// takeMemory checks the size of a header or footer against the limits, before the header or footer is read.
func (f *File) takeMemory(size int64, path string) error {
	if size > f.Limits.Metadata {
		return fault.Limitf(f.At, path, "%d bytes, and at most %d are read (metadata limit)", size, f.Limits.Metadata)
	}
	return f.taken.Take(size, f.At, path)
}

// readHeader parses the header. all is the whole file if it is short.
func (f *File) readHeader(ctx context.Context, all []byte, checksums bool) error {
	if int64(len(all)) < f.At.Len {
		all = make([]byte, readHead)
		if err := format.ReadFull(ctx, f.Src, f.At.Sub(0, readHead), "header", all); err != nil {
			return err
		}
	}
	c := wire.NewCursor(all, f.At.Sub(0, int64(len(all))), "header")
	block.ParseMagic(c)
	n := block.ParseLength(c)
	if c.Err() != nil {
		f.Head = all[:block.Tail]
		return c.Err()
	}
	size := block.Tail + n
	if checksums {
		size += 4
	}
	if int64(size+len(f.Foot)) > f.At.Len {
		return fault.Corruptf(f.At.Sub(block.MagicLen, 4), "header.length", "%d bytes do not fit in a file of %d",
			n, f.At.Len)
	}
	if err := f.takeMemory(int64(size), "header"); err != nil {
		return err
	}
	if size > len(all) {
		all = make([]byte, size)
		if err := format.ReadFull(ctx, f.Src, f.At.Sub(0, int64(size)), "header", all); err != nil {
			return err
		}
	}
	f.Head = all[:size]
	c = wire.NewCursor(f.Head, f.HeadSpan(), "header").Within(f.taken)
	var fr block.Frame
	f.Header, fr = block.ParseHeader(c, checksums)
	if c.Err() == nil && fr.Stored != fr.Computed && !f.NoVerify {
		return ChecksumError(f.HeadSpan(), "header.checksum", fr)
	}
	return c.Err()
}

// TraceHeader traces the parts of the header; a damaged one as far as it can be parsed.
func (f *File) TraceHeader(trace func(region.Node)) {
	if f.Head == nil {
		return
	}
	trace(region.Node{Kind: region.Struct, Name: "header", At: f.HeadSpan(), Inner: -1,
		Value: fmt.Sprintf("CFile v%d", f.Header.Version)})
	block.ParseHeader(wire.NewCursor(f.Head, f.HeadSpan(), "header").Trace(trace, 1), f.Footer.Checksums())
}

// TraceFooter traces the parts of the footer; a damaged one as far as it can be parsed.
func (f *File) TraceFooter(trace func(region.Node)) {
	if f.Foot == nil {
		return
	}
	trace(region.Node{Kind: region.Struct, Name: "footer", At: f.FootSpan(), Inner: -1,
		Value: fmt.Sprintf("%s %s, %s", f.Footer.Type, f.Footer.Encoding, fault.Count(f.Footer.NumValues, "value"))})
	block.ParseFooter(wire.NewCursor(f.Foot, f.FootSpan(), "footer").Trace(trace, 1), f.Footer.Checksums())
}

// Span is the span of a block in the object.
func (f *File) Span(p block.BlockPtr) fault.Span { return f.At.Sub(p.Offset, p.Size) }

// Problem returns the reason why p cannot be a block of f, or "".
func (f *File) Problem(p block.BlockPtr) string {
	minSize := int64(1)
	if f.Footer.Checksums() {
		minSize = 5
	}
	end := f.At.Len - int64(len(f.Foot))
	switch {
	case p.Offset < int64(len(f.Head)) || p.Offset >= end:
		return fmt.Sprintf("offset %d is not between the header's end (%d) and the footer (%d)", p.Offset,
			len(f.Head), end)
	case p.Size < minSize:
		return fmt.Sprintf("size %d is too small for a block", p.Size)
	case p.Size > end-p.Offset:
		return fmt.Sprintf("offset %d and size %d: the block would end after %d, where the footer begins",
			p.Offset, p.Size, end)
	}
	return ""
}

// CheckSize returns a Limit error if a block is larger than the page limit.
func (f *File) CheckSize(at fault.Span, path string) error {
	if at.Len > f.Limits.Page {
		return fault.Limitf(at, path, "%d bytes, a page has at most %d (page limit or memory limit)", at.Len,
			f.Limits.Page)
	}
	return nil
}

// factOf is the text of a metadata pair's value.
func (f *File) factOf(m block.MetaPair) string {
	if m.Key == block.FieldKey || m.Key == block.SetKey {
		return string(m.Value)
	}
	return fmt.Sprintf("%x", m.Value)
}

// Kind is the kind of the file by its footer, see block.Kind.
func (f *File) Kind() block.Kind {
	t := &f.Footer
	if _, ok := t.Get(block.MetaDeltaStats); ok && f.WhyNot(block.KindDelta) == "" {
		return block.KindDelta
	}
	if t.Type != block.Binary || t.ValIdx == nil || t.PosIdx != nil || t.Nullable || t.Array() {
		return block.KindColumn
	}
	_, hasMin := t.Get(block.MinKeyKey)
	_, hasMax := t.Get(block.MaxKeyKey)
	switch {
	case t.Encoding == block.Plain && t.Compression == block.NoCompression && t.NumValues == 0 && !hasMin && !hasMax:
		return block.KindBloom
	case t.Encoding == block.Prefix && hasMin && hasMax:
		return block.KindIndex
	}
	return block.KindColumn
}

// WhyNot returns the reason why a file cannot be read as kind k, or "". KindColumn is never refused.
func (f *File) WhyNot(k block.Kind) string {
	t := &f.Footer
	switch {
	case k == block.KindDelta && (t.ValIdx == nil || t.Type != block.Binary || t.Nullable || t.Array()):
		return "not a delta file: those are binary, without nulls, and have a value index"
	case k == block.KindBloom && (t.ValIdx == nil || t.Type != block.Binary || f.Codec != nil):
		return "not a bloom file: those are binary, not compressed, and have a value index"
	case k == block.KindIndex && (t.ValIdx == nil || t.Type != block.Binary || t.Nullable || t.Array()):
		return "not an ad-hoc index: those are binary, without nulls, and have a value index"
	}
	return ""
}

// Sorted reports whether the values of f ascend, so that its value index can be searched by value. Values of delta
// files do not ascend: only their keys do, and not within a row.
func (f *File) Sorted() bool {
	k := f.Kind()
	return f.Footer.ValIdx != nil && !f.Footer.Nullable && !f.Footer.Array() && block.Keyable(f.Footer.Type) &&
		k != block.KindDelta && k != block.KindBloom
}

// Facts are what `stoa meta` prints of a file.
func (f *File) Facts() []format.KeyValue {
	var out []format.KeyValue
	add := func(k, v string) { out = append(out, format.KeyValue{Key: k, Value: v}) }
	h, t := &f.Header, &f.Footer
	add("format", fmt.Sprintf("CFile v%d", h.Version))
	add("kind", f.Kind().String())
	add("data_type", t.Type.String())
	add("encoding", t.Encoding.String())
	add("compression", t.Compression.String())
	add("nullable", fmt.Sprint(t.Nullable))
	add("array", fmt.Sprint(t.Array()))
	add("num_values", fmt.Sprint(t.NumValues))
	add("checksums", fmt.Sprint(t.Checksums()))
	add("incompatible_features", block.FeatureList(t.Incompatible))
	add("compatible_features", fmt.Sprint(t.Compatible))
	for _, p := range []struct {
		name string
		ptr  *block.BlockPtr
	}{{"positional_index", t.PosIdx}, {"value_index", t.ValIdx}, {"dictionary", t.Dict}} {
		if p.ptr != nil {
			add(p.name, fmt.Sprintf("%d+%d", p.ptr.Offset, p.ptr.Size))
		}
	}
	for _, m := range h.Meta {
		add("header."+m.Key, f.factOf(m))
	}
	for _, m := range t.Meta {
		add(m.Key, f.factOf(m))
	}
	return out
}

// DeltaStats are the statistics in f's metadata; false if there are none. The error is Corrupt.
func (f *File) DeltaStats() (DeltaStats, bool, error) {
	b, ok := f.Footer.Get(block.MetaDeltaStats)
	if !ok {
		return DeltaStats{}, false, nil
	}
	s, err := ParseDeltaStats(b, f.FootSpan())
	return s, true, err
}
