package recovery

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/dremel"
)

func classOf(err error) fault.Class {
	var e *fault.Error
	if errors.As(err, &e) {
		return e.Class
	}
	return fault.Bug
}

// leafKind holds the properties of a column that decide whether a page can belong to it.
type leafKind struct {
	typ    int32
	width  int // bytes of a value; 0 if variable
	maxDef int
	maxRep int
}

func kindOf(c *meta.SchemaColumn) leafKind {
	k := leafKind{typ: int32(c.PhysicalType()), maxDef: int(c.MaxDefinitionLevel()),
		maxRep: int(c.MaxRepetitionLevel())}
	k.width = []int{0, 4, 8, 12, 4, 8, 0, 0}[k.typ]
	if k.typ == meta.TypeFixed {
		k.width = c.TypeLength()
	}
	return k
}

// fit records whether a page can belong to a column, and how many rows begin in it. codec is -1 if every codec would
// do.
type fit struct {
	ok      bool
	rows    int64
	codec   meta.Compression
	damaged bool // its checksum is wrong: only its header has the number of rows
}

// fit checks page i against a column.
func (w *pageWalk) fit(i, col int) (fit, error) {
	key := [2]int{i, col}
	f, ok := w.fits[key]
	if ok {
		return f, nil
	}
	if err := w.s.ctx.Err(); err != nil {
		return fit{}, err
	}
	f, err := w.tryFit(&w.pages[i].Page, &w.cols[col])
	if err != nil {
		return fit{}, err
	}
	w.fits[key] = f
	return f, nil
}

func (w *pageWalk) tryFit(p *meta.Page, k *leafKind) (f fit, err error) {
	if max(p.Body.Len, p.Raw) > w.s.r.Limits.Page {
		return f, fault.Limitf(p.Body, "page", "%d bytes, the limit is %d", max(p.Body.Len, p.Raw), w.s.r.Limits.Page)
	}
	b := make([]byte, p.Body.Len)
	if err := format.ReadFull(w.s.ctx, w.s.r.Src, p.Body, "page", b); err != nil {
		return f, err
	}
	if badSum(p, b) { // a damaged page is not examined; its rows will be lost when it is read
		return fit{ok: k.maxRep == 0 || p.Rows >= 0 ||
			!p.IsData(), rows: max(p.Rows, p.Values*int64(b2i(p.IsData()))), codec: -1, damaged: true}, nil
	}
	for _, code := range w.codecs(p, b) {
		if f, ok := tryCodec(p, k, code, b); ok {
			if f.codec >= 0 {
				w.codec = code
			}
			return f, nil
		}
	}
	return f, nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// codecs returns the codecs with which a page may be compressed, the most likely first.
func (w *pageWalk) codecs(p *meta.Page, b []byte) (out []meta.Compression) {
	all := []meta.Compression{w.codec, meta.CodecNone, meta.CodecSnappy, meta.CodecGzip, meta.CodecZstd,
		meta.CodecLZ4Raw, meta.CodecBrotli}
	for i, c := range all {
		if slices.Contains(all[:i], c) || c == meta.CodecNone && int64(len(b)) != p.Raw {
			continue
		}
		out = append(out, c)
	}
	return out
}

// tryCodec decompresses a page with a codec and checks whether it can belong to a column.
func tryCodec(p *meta.Page, k *leafKind, code meta.Compression, b []byte) (f fit, ok bool) {
	f.codec = code
	levels := [2][]byte{}
	raw := p.Raw
	if p.Kind == meta.DataPageV2 {
		def, rep := int64(p.Levels[0]), int64(p.Levels[1])
		if def+rep > int64(len(b)) || def+rep > raw || p.Values > 0 &&
			((rep > 0) != (k.maxRep > 0) || (def > 0) != (k.maxDef > 0)) {
			return f, false
		}
		levels[1], levels[0], b, raw = b[:rep], b[rep:rep+def], b[rep+def:], raw-rep-def
	}
	switch {
	case p.Uncompressed || len(b) == 0 && raw == 0: // uncompressed, whatever the codec
		f.codec = -1
	case code == meta.CodecBrotli && raw > 32768*int64(len(b)): // more likely another codec
		return f, false
	case code != meta.CodecNone:
		var err error
		if b, err = code.Decompress(b, raw, math.MaxInt64, meta.Alloc); err != nil {
			return f, false
		}
	}
	if int64(len(b)) != raw {
		return f, false
	}
	values := int(p.Values)
	if p.Kind == meta.DictionaryPage {
		f.ok = k.plainFits(b, values)
		return f, f.ok
	}
	if p.Kind == meta.DataPage {
		if levels, b, ok = cutLevels(p, k, b); !ok {
			return f, false
		}
	}
	f.rows = p.Values
	if k.maxRep > 0 {
		n, ok := countLevels(levels[1], bits.Len(uint(k.maxRep)), values, 0, k.maxRep)
		if !ok || p.Rows >= 0 && p.Rows != int64(n) {
			return f, false
		}
		f.rows = int64(n)
	}
	if k.maxDef > 0 {
		if values, ok = countLevels(levels[0], bits.Len(uint(k.maxDef)), values, k.maxDef, k.maxDef); !ok {
			return f, false
		}
	}
	f.ok = k.valuesFit(p.Encoding, b, values)
	return f, f.ok
}

// cutLevels splits a data page v1 into definition levels, repetition levels and values.
func cutLevels(p *meta.Page, k *leafKind, b []byte) (levels [2][]byte, values []byte, ok bool) {
	for _, i := range []int{1, 0} {
		if maxLevel := []int{k.maxDef, k.maxRep}[i]; maxLevel == 0 {
			continue
		}
		if len(b) < 4 || p.Levels[i] != meta.RleLevels {
			return levels, b, false
		}
		n := binary.LittleEndian.Uint32(b)
		if uint64(n) > uint64(len(b)-4) {
			return levels, b, false
		}
		levels[i], b = b[4:4+n], b[4+n:]
	}
	return levels, b, true
}

// countLevels counts how many of n levels equal wanted. Levels are stored in runs: either ULEB128 of twice the length,
// followed by the level; or ULEB128 of twice the number of groups of eight, plus one, followed by these groups
// bit-packed. ok is false unless there are exactly n levels, none greater than maxLevel.
func countLevels(b []byte, width, n, wanted, maxLevel int) (hits int, ok bool) {
	for left := n; left > 0; {
		head, used := binary.Uvarint(b)
		if used <= 0 || head == 0 {
			return hits, false
		}
		b = b[used:]
		if head&1 == 0 {
			size := (width + 7) / 8
			if len(b) < size || head>>1 > uint64(left) {
				return hits, false
			}
			v := int(bitsAt(b, 0, 8*size))
			if b = b[size:]; v > maxLevel {
				return hits, false
			}
			if v == wanted {
				hits += int(head >> 1)
			}
			left -= int(head >> 1)
			continue
		}
		groups := head >> 1
		if groups > uint64(left+7)/8 || groups*uint64(width) > uint64(len(b)) {
			return hits, false
		}
		for i := 0; i < int(groups)*8 && left > 0; i, left = i+1, left-1 {
			v := int(bitsAt(b, i*width, width))
			if v > maxLevel {
				return hits, false
			}
			hits += b2i(v == wanted)
		}
		b = b[int(groups)*width:]
	}
	return hits, len(b) == 0
}

// plainFits reports whether b can be n PLAIN values.
func (k *leafKind) plainFits(b []byte, n int) bool {
	switch {
	case k.typ == meta.TypeBoolean:
		return len(b) == (n+7)/8
	case k.typ != meta.TypeBytes:
		return int64(len(b)) == int64(n)*int64(k.width)
	}
	for range n {
		if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
			return false
		}
		b = b[4+binary.LittleEndian.Uint32(b):]
	}
	return len(b) == 0
}

// valuesFit reports whether b can be n values in an encoding.
func (k *leafKind) valuesFit(encoding int32, b []byte, n int) bool {
	switch encoding {
	case meta.PlainValues:
		return k.plainFits(b, n)
	case meta.PlainDictionary, meta.RleDictionary:
		return k.typ != meta.TypeBoolean && (n == 0 || len(b) > 0 && b[0] <= 32)
	case meta.RleValues:
		return k.typ == meta.TypeBoolean && (n == 0 || len(b) >= 4 &&
			int64(binary.LittleEndian.Uint32(b)) == int64(len(b)-4))
	case meta.DeltaBinaryPacked:
		return (k.typ == meta.TypeInt32 || k.typ == meta.TypeInt64) && deltasFit(b, n)
	case meta.DeltaLengths:
		return k.typ == meta.TypeBytes && deltasFit(b, n)
	case meta.DeltaByteArray:
		return (k.typ == meta.TypeBytes || k.typ == meta.TypeFixed) && deltasFit(b, n)
	case meta.ByteStreamSplit:
		return k.width > 0 && int64(len(b)) == int64(n)*int64(k.width)
	}
	return false
}

func deltasFit(b []byte, n int) bool {
	if n == 0 && len(b) == 0 {
		return true
	}
	return dremel.HasDeltas(b, n)
}

// bitsAt returns the integer of width bits at a bit offset, least significant bit first.
func bitsAt(b []byte, bit, width int) (v uint64) {
	for got := 0; got < width; {
		k := min(8-bit%8, width-got)
		v |= uint64(b[bit/8]>>(bit%8)&(1<<k-1)) << got
		got, bit = got+k, bit+k
	}
	return v
}
