package parquet

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/metadata"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/codec"
	"stoa/internal/thrift"
	"stoa/vec"
)

// The library has no decoder for DELTA_BYTE_ARRAY of FIXED_LEN_BYTE_ARRAY, which others write, and of DELTA_BINARY_PACKED of INT32 it refuses
// numbers that are longer than 32 bits, with which others reckon modulo 2^32. It is given such a chunk as another one: the same pages, not compressed, with these values PLAIN. That chunk is in memory, and lies behind the end of
// the file as the library sees it.

// Encodings: parquet.thrift, Encoding.
const (
	plain          = 0
	rleLevels      = 3
	deltaByteArray = 7
)

// recoded is the file as the library sees it: with other metadata, and more bytes behind it.
type recoded struct {
	meta  *metadata.FileMetaData
	more  []byte
	first map[int]int64 // leaf: the row with which the chunk that was made begins
}

// needsRecoding reports whether the library cannot decode a chunk, but we can.
func (c *columns) needsRecoding(leaf int) bool {
	m := c.r.meta.RowGroups[c.group].Columns[leaf].MetaData
	return parquet.Type(m.Type) == parquet.Types.FixedLenByteArray && slices.ContainsFunc(m.Encodings, isDeltaBytes) || c.wide && c.r.hasDeltas32(c.group, leaf)
}

func isDeltaBytes[T ~int32 | ~int64](e T) bool { return e == deltaByteArray }

func isDeltas[T ~int32 | ~int64](e T) bool { return e == deltaBinaryPacked }

// hasDeltas32 reports whether a chunk has numbers of 32 bits as deltas.
func (r *reader) hasDeltas32(group, leaf int) bool {
	m := r.meta.RowGroups[group].Columns[leaf].MetaData
	return parquet.Type(m.Type) == parquet.Types.Int32 && slices.ContainsFunc(m.Encodings, isDeltas)
}

// tooWide reports whether the library refuses deltas of 32-bit numbers because one of them, or what is packed of it, is longer than that. The format's
// arithmetic is modulo 2^32, and DuckDB writes the first value and the deltas with all their 64 bits. Looking at every page beforehand would cost those
// who read other files; so it is known when the library says so.
func (f *feed) tooWide(err error) bool {
	if !errors.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), "exceeds INT32 range") && !strings.Contains(err.Error(), "exceeds decoder width 32") {
		return false
	}
	return slices.ContainsFunc(f.parts, func(p fieldPart) bool {
		return slices.ContainsFunc(p.leaves, func(leaf int) bool { return f.r.hasDeltas32(f.group, leaf) })
	})
}

// recode makes the chunks that need it, for rows. Of a field with one column these are not more than the pages of these rows, where that is
// known; of others, all: the columns must agree where they begin.
func (c *columns) recode(ctx context.Context, rows vec.Range) error {
	for _, p := range c.parts {
		for _, leaf := range p.leaves {
			if !c.needsRecoding(leaf) || c.refused(leaf) != "" {
				continue
			}
			if c.other == nil {
				c.other = &recoded{meta: c.r.meta, first: map[int]int64{}}
			}
			if err := c.recodeChunk(ctx, leaf, rows, len(p.leaves) == 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// recodeChunk adds a chunk to what lies behind the file, and puts it into the metadata.
// some: not more pages than needed.
func (c *columns) recodeChunk(ctx context.Context, leaf int, rows vec.Range, some bool) error {
	begin := len(c.other.more)
	known, err := c.ends(ctx, leaf)
	some = some && err == nil && (known != nil || c.r.meta.Schema.Column(leaf).MaxRepetitionLevel() == 0)
	var data, row, first, values int64
	for p, err := range c.r.pages(ctx, c.group, leaf) {
		if err != nil {
			return err
		}
		end := row
		if p.isData() {
			if end += p.values; len(known) > 0 {
				end, known = known[0], known[1:]
			}
			if some && row >= rows.To {
				break
			}
			if some && end <= rows.From {
				row, first = end, end
				continue
			}
			if values == 0 {
				data = int64(len(c.other.more))
			}
			row, values = end, values+p.values
		}
		if err := c.recodePage(ctx, leaf, &p); err != nil {
			return fault.Locate(err, p.body, false, indexPath(c.group, leaf, "page"))
		}
	}
	c.other.first[leaf] = first
	c.other.meta = withChunk(c.other.meta, c.group, leaf, c.r.size+int64(begin), c.r.size+data, int64(len(c.other.more)-begin), values)
	return nil
}

// ends are the rows before which the data pages of a list's leaf end, as the offset index says; nil if there is none.
func (c *columns) ends(ctx context.Context, leaf int) ([]int64, error) {
	if c.r.meta.Schema.Column(leaf).MaxRepetitionLevel() == 0 {
		return nil, nil // they say it themselves
	}
	x, err := c.r.offsetIndex(ctx, c.group, leaf)
	if x == nil || err != nil || len(x.firstRow) == 0 {
		return nil, err
	}
	return append(slices.Clone(x.firstRow[1:]), math.MaxInt64), nil
}

// withChunk is m with another chunk in the place of one: uncompressed, at off, with its first data page at data.
func withChunk(m *metadata.FileMetaData, group, leaf int, off, data, size, values int64) *metadata.FileMetaData {
	out, file := *m, *m.FileMetaData
	out.FileMetaData, file.RowGroups = &file, slices.Clone(file.RowGroups)
	g := *file.RowGroups[group]
	file.RowGroups[group], g.Columns = &g, slices.Clone(g.Columns)
	c := *g.Columns[leaf]
	g.Columns[leaf] = &c
	d := *c.MetaData
	c.MetaData, c.OffsetIndexOffset, c.OffsetIndexLength, c.ColumnIndexOffset, c.ColumnIndexLength = &d, nil, nil, nil, nil
	d.Codec, d.TotalCompressedSize, d.TotalUncompressedSize, d.NumValues, d.DataPageOffset, d.DictionaryPageOffset = 0, size, size, values, data, nil
	if data > off {
		d.DictionaryPageOffset = &off
	}
	d.Encodings = slices.Clone(d.Encodings)
	for i, e := range d.Encodings {
		if isDeltaBytes(e) || isDeltas(e) {
			d.Encodings[i] = plain
		}
	}
	return &out
}

// recodePage appends a page as the library takes it.
func (c *columns) recodePage(ctx context.Context, leaf int, p *page) error {
	if p.kind == indexPage {
		return nil
	}
	levels, values, err := c.openPage(ctx, leaf, p)
	if err != nil {
		return err
	}
	if p.isData() && (p.encoding == deltaByteArray || p.encoding == deltaBinaryPacked) {
		width := 4
		if p.encoding == deltaByteArray {
			width = c.r.meta.Schema.Column(leaf).TypeLength()
		}
		if p.values*int64(width) > c.r.limits.Page-int64(len(c.other.more)) {
			return fault.Limitf(p.body, "", "%d values of %d bytes, the limit is %d", p.values, width, c.r.limits.Page)
		}
		if p.encoding == deltaByteArray {
			values, err = plainOfDeltas(values, width, int(p.values))
		} else {
			values, err = plainOfDeltas32(values, int(p.values))
		}
		if err != nil {
			return err
		}
		p.encoding = plain
	}
	size := len(levels) + len(values)
	if int64(size) > c.r.limits.Page-int64(len(c.other.more)) {
		return fault.Limitf(p.body, "", "the column chunk has more than %d bytes", c.r.limits.Page)
	}
	c.other.more = append(append(append(c.other.more, p.bareHeader(int32(size))...), levels...), values...)
	return nil
}

// bareHeader is the header of the page with a body of so many bytes that are not compressed.
func (p *page) bareHeader(size int32) []byte {
	w := thrift.NewWriter(thrift.Compact)
	w.Struct(thrift.Item)
	w.I32(1, p.kind)
	w.I32(2, size)
	w.I32(3, size)
	switch p.kind {
	case dataPage:
		w.Struct(5)
		w.I32(1, int32(p.values))
		w.I32(2, p.encoding)
		w.I32(3, p.levels[0])
		w.I32(4, p.levels[1])
		w.End()
	case dictionaryPage:
		w.Struct(7)
		w.I32(1, int32(p.values))
		w.I32(2, p.encoding)
		w.End()
	case dataPageV2:
		w.Struct(8)
		w.I32(1, int32(p.values))
		w.I32(2, int32(p.nulls))
		w.I32(3, int32(p.rows))
		w.I32(4, p.encoding)
		w.I32(5, p.levels[0])
		w.I32(6, p.levels[1])
		w.Bool(7, false)
		w.End()
	}
	w.End()
	return slices.Clone(w.Encoded())
}

// openPage reads a page, compares its checksum and decompresses it. The levels are as they are stored, with their lengths.
func (c *columns) openPage(ctx context.Context, leaf int, p *page) (levels, values []byte, err error) {
	b, err := c.storedPage(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	code := compress.Compression(c.r.meta.RowGroups[c.group].Columns[leaf].MetaData.Codec)
	raw := p.raw
	if p.kind == dataPageV2 {
		n := int64(p.levels[0]) + int64(p.levels[1])
		if p.levels[0] < 0 || p.levels[1] < 0 || n > int64(len(b)) || n > raw {
			return nil, nil, fault.Rel(0, len(b), "levels", "%d and %d bytes of levels in a page of %d", p.levels[0], p.levels[1], len(b))
		}
		levels, b, raw = b[:n], b[n:], raw-n
	}
	if code != compress.Codecs.Uncompressed && !p.bare && len(b) > 0 {
		if b, err = decompress(code, b, raw); err != nil {
			return nil, nil, err
		}
	}
	if int64(len(b)) != raw {
		return nil, nil, fault.Rel(0, len(b), "uncompressed_page_size", "%d, but there are %d bytes", raw, len(b))
	}
	if p.kind != dataPage {
		return levels, b, nil
	}
	n, err := c.levelBytes(leaf, p, b)
	return b[:n], b[n:], err
}

// decompress gives the raw bytes of b, which the header of its page says to be so many.
func decompress(code compress.Compression, b []byte, raw int64) ([]byte, error) {
	if most := mostRaw(code, int64(len(b))); raw > most {
		return nil, fault.Rel(0, len(b), "uncompressed_page_size", "%d, but %d bytes cannot become more than %d", raw, len(b), most)
	}
	if name, ok := ownCodecs[code]; ok {
		return codec.Expand(name, b, raw, func(n int) []byte { return make([]byte, n) })
	}
	lib, err := compress.GetCodec(code)
	if err != nil {
		return nil, err
	}
	if stream, ok := lib.(compress.StreamingCodec); ok && raw == 0 { // without room the library does not see that Brotli's stream ends
		r := stream.NewReader(bytes.NewReader(b))
		defer r.Close()
		if n, err := io.Copy(io.Discard, io.LimitReader(r, 1)); err != nil || n != 0 {
			return nil, fault.Rel(0, len(b), "compression", "this is no empty stream, %v", err)
		}
		return []byte{}, nil
	}
	out, err := compress.Decode(lib, make([]byte, raw), b)
	if err != nil {
		return nil, fault.Rel(0, len(b), "compression", "%v", err)
	}
	return out, nil
}

// ownCodecs are the names that internal/codec has for codecs.
var ownCodecs = map[compress.Compression]string{compress.Codecs.Snappy: "snappy", compress.Codecs.Gzip: "gzip", compress.Codecs.Zstd: "zstd"}

// storedPage reads the body of a page.
func (c *columns) storedPage(ctx context.Context, p *page) ([]byte, error) {
	if n := max(p.body.Len, p.raw); n > c.r.limits.Page {
		return nil, fault.Limitf(p.body, "", "%d bytes, the limit is %d", n, c.r.limits.Page)
	}
	b := make([]byte, p.body.Len)
	if err := format.ReadFull(ctx, c.r.src, p.body, "", b); err != nil {
		return nil, err
	}
	if got := crc32.ChecksumIEEE(b); p.hasCRC && got != p.crc && !c.r.noVerify {
		return nil, fault.Corruptf(p.body, "crc", "the checksum is %08x, the header says %08x", got, p.crc)
	}
	return b, nil
}

// levelBytes is how long the levels of a data page v1 are: those of repetition, then of definition, a u32 of their length before each.
func (c *columns) levelBytes(leaf int, p *page, b []byte) (n int, err error) {
	col := c.r.meta.Schema.Column(leaf)
	for k, most := range []int16{col.MaxDefinitionLevel(), col.MaxRepetitionLevel()} {
		if most > 0 && p.levels[k] != rleLevels {
			return 0, fault.Unsupportedf(p.header, "", "levels in encoding %s", named(encodings, p.levels[k]))
		}
		if most == 0 {
			continue
		}
		if len(b)-n < 4 || int64(binary.LittleEndian.Uint32(b[n:])) > int64(len(b)-n-4) {
			return 0, fault.Rel(n, len(b)-n, "levels", "they are cut")
		}
		n += 4 + int(binary.LittleEndian.Uint32(b[n:]))
	}
	return n, nil
}
