package parquet

import (
	"fmt"

	"stoa/fault"
	"stoa/internal/thrift"
	"stoa/vec"
	"stoa/wire"
)

// offsetIndex says where the data pages of a column chunk are, and with which row each begins (parquet.thrift,
// OffsetIndex).
type offsetIndex struct {
	at       fault.Span
	offsets  []int64 // in the file
	sizes    []int32 // with the header
	firstRow []int64
	bytes    []int64    // per page, of strings without their lengths; nil: not said
	behind   fault.Span // bytes that the footer counts to the index, and that are not of it
}

// columnIndex says what is in the data pages of a column chunk (parquet.thrift, ColumnIndex).
type columnIndex struct {
	at        fault.Span
	nullPages []bool   // nothing but nulls
	min, max  [][]byte // without meaning for pages of nulls
	nulls     []int64  // nil: not known
	order     int32    // of the bounds from page to page: see orders
	repLevels []int64  // entries per page and level; nil: not said
	defLevels []int64
	behind    fault.Span
}

func parseOffsetIndex(r *thrift.Reader) (x offsetIndex) {
	for r.Struct("offset_index"); r.Next(); {
		switch r.Field() {
		case 1:
			for range r.List("page_locations", thrift.Struct) {
				var at, row int64
				var size int32
				for r.Struct(""); r.Next(); {
					switch r.Field() {
					case 1:
						at = r.I64("offset")
					case 2:
						size = r.I32("compressed_page_size")
					case 3:
						row = r.I64("first_row_index")
					}
				}
				x.offsets, x.sizes, x.firstRow = append(x.offsets, at), append(x.sizes, size), append(x.firstRow, row)
			}
		case 2:
			for range r.List("unencoded_byte_array_data_bytes", thrift.I64) {
				x.bytes = append(x.bytes, r.I64(""))
			}
		}
	}
	return x
}

func parseColumnIndex(r *thrift.Reader) (x columnIndex) {
	for r.Struct("column_index"); r.Next(); {
		switch r.Field() {
		case 1:
			for range r.List("null_pages", thrift.Bool) {
				x.nullPages = append(x.nullPages, r.Bool(""))
			}
		case 2:
			for range r.List("min_values", thrift.Bytes) {
				x.min = append(x.min, r.Bytes(""))
			}
		case 3:
			for range r.List("max_values", thrift.Bytes) {
				x.max = append(x.max, r.Bytes(""))
			}
		case 4:
			x.order = r.Enum("boundary_order", func(v int32) string { return named(orders, v) })
		case 5:
			for range r.List("null_counts", thrift.I64) {
				x.nulls = append(x.nulls, r.I64(""))
			}
		case 6:
			for range r.List("repetition_level_histograms", thrift.I64) {
				x.repLevels = append(x.repLevels, r.I64(""))
			}
		case 7:
			for range r.List("definition_level_histograms", thrift.I64) {
				x.defLevels = append(x.defLevels, r.I64(""))
			}
		}
	}
	return x
}

// parseBloomHeader reads a BloomFilterHeader and gives the length of the filter behind it.
func parseBloomHeader(r *thrift.Reader) (n int64) {
	union := func(name, only string) { walk(r, name, structure{1: {name: only}}) }
	for r.Struct("header"); r.Next(); {
		switch r.Field() {
		case 1:
			n = int64(r.I32("num_bytes"))
		case 2:
			union("algorithm", "BLOCK")
		case 3:
			union("hash", "XXHASH")
		case 4:
			union("compression", "UNCOMPRESSED")
		}
	}
	return n
}

// indexPath names an index in errors.
func indexPath(group, leaf int, name string) string {
	return fmt.Sprintf("row_groups[%d].columns[%d].%s", group, leaf, name)
}

// indexBytes is a cursor over the bytes of an index.
func indexBytes(b []byte, at fault.Span, path string, s *sealed, m module) (*wire.Cursor, error) {
	if s == nil {
		return wire.NewCursor(b, at, path), nil
	}
	plain, used, err := s.open(b, m, 0, room)
	if err == nil && used != len(b) {
		err = fault.Rel(used, len(b)-used, "", "%d bytes behind the encrypted index", len(b)-used)
	}
	if err != nil {
		return nil, fault.Locate(err, at, true, path)
	}
	return wire.NewInnerCursor(plain, at, path), nil
}

// check holds an offset index against the chunk that it is of.
func (x *offsetIndex) check(chunk fault.Span, base, rows int64, path string) error {
	end, last := chunk.Off, int64(-1)
	for i, off := range x.offsets {
		path := fmt.Sprintf("%s.page_locations[%d]", path, i)
		if size := int64(x.sizes[i]); off < end-base || size < 0 || size > chunk.End()-base-off {
			return fault.Corruptf(x.at, path,
				"%d bytes at %d do not lie in the column chunk behind the page before", size, off)
		}
		end = base + off + int64(x.sizes[i])
		if f := x.firstRow[i]; i == 0 && f != 0 || f < last || f >= max(rows, 1) {
			return fault.Corruptf(x.at, path+".first_row_index", "%d behind %d in a row group of %d rows", f, last,
				rows)
		}
		last = x.firstRow[i]
	}
	return nil
}

// rowsOf is the rows of the row group that page k has by the index; the row group has so many.
func (x *offsetIndex) rowsOf(k int, rows int64) vec.Range {
	if k+1 < len(x.firstRow) {
		rows = x.firstRow[k+1]
	}
	return vec.Range{From: x.firstRow[k], To: rows}
}

// said is what a column index says of a page.
func (x *columnIndex) said(page int) *said {
	s := &said{none: &x.nullPages[page]}
	if x.nulls != nil {
		s.nulls = &x.nulls[page]
	}
	if !x.nullPages[page] {
		s.min, s.max = x.min[page], x.max[page]
	}
	return s
}
