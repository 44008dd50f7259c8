package meta

import (
	"fmt"

	"stoa/fault"
	"stoa/internal/thrift"
	"stoa/vec"
	"stoa/wire"
)

// OffsetIndex lists the positions of the data pages of a column chunk and the first row of each (parquet.thrift,
// OffsetIndex).
type OffsetIndex struct {
	At       fault.Span
	Offsets  []int64 // in the file
	Sizes    []int32 // including the header
	FirstRow []int64
	Bytes    []int64    // bytes of strings without their lengths, by page; nil if not stated
	Trailing fault.Span // bytes that the footer counts as part of the index although they are not
}

// ColumnIndex summarizes the values of the data pages of a column chunk (parquet.thrift, ColumnIndex).
type ColumnIndex struct {
	At        fault.Span
	NullPages []bool   // pages that contain only nulls
	Min, Max  [][]byte // meaningless for pages of nulls
	Nulls     []int64  // nil if unknown
	Order     int32    // of the bounds from page to page: see BoundaryOrders
	RepLevels []int64  // entries by page and level; nil if not stated
	DefLevels []int64
	Trailing  fault.Span
}

// ParseOffsetIndex reads an OffsetIndex; errors are left in the reader.
func ParseOffsetIndex(r *thrift.Reader) (x OffsetIndex) {
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
				x.Offsets, x.Sizes, x.FirstRow = append(x.Offsets, at), append(x.Sizes, size), append(x.FirstRow, row)
			}
		case 2:
			for range r.List("unencoded_byte_array_data_bytes", thrift.I64) {
				x.Bytes = append(x.Bytes, r.I64(""))
			}
		}
	}
	return x
}

// ParseColumnIndex reads a ColumnIndex; errors are left in the reader.
func ParseColumnIndex(r *thrift.Reader) (x ColumnIndex) {
	for r.Struct("column_index"); r.Next(); {
		switch r.Field() {
		case 1:
			for range r.List("null_pages", thrift.Bool) {
				x.NullPages = append(x.NullPages, r.Bool(""))
			}
		case 2:
			for range r.List("min_values", thrift.Bytes) {
				x.Min = append(x.Min, r.Bytes(""))
			}
		case 3:
			for range r.List("max_values", thrift.Bytes) {
				x.Max = append(x.Max, r.Bytes(""))
			}
		case 4:
			x.Order = r.Enum("boundary_order", func(v int32) string { return EnumName(BoundaryOrders, v) })
		case 5:
			for range r.List("null_counts", thrift.I64) {
				x.Nulls = append(x.Nulls, r.I64(""))
			}
		case 6:
			for range r.List("repetition_level_histograms", thrift.I64) {
				x.RepLevels = append(x.RepLevels, r.I64(""))
			}
		case 7:
			for range r.List("definition_level_histograms", thrift.I64) {
				x.DefLevels = append(x.DefLevels, r.I64(""))
			}
		}
	}
	return x
}

// ParseBloomHeader reads a BloomFilterHeader and returns the size of the filter that follows it.
func ParseBloomHeader(r *thrift.Reader) (n int64) {
	union := func(name, only string) { Walk(r, name, structure{1: {name: only}}) }
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

// IndexPath returns the name of a part of a column chunk for error messages.
func IndexPath(group, leaf int, name string) string {
	return fmt.Sprintf("row_groups[%d].columns[%d].%s", group, leaf, name)
}

// IndexCursor returns a cursor over the bytes b of an index whose span is at, decrypted by s, which may be nil.
func IndexCursor(b []byte, at fault.Span, path string, s *Cipher, m Module) (*wire.Cursor, error) {
	if s == nil {
		return wire.NewCursor(b, at, path), nil
	}
	plain, used, err := s.Decrypt(b, m, 0, Alloc)
	if err == nil && used != len(b) {
		err = fault.Rel(used, len(b)-used, "", "%d bytes after the encrypted index", len(b)-used)
	}
	if err != nil {
		return nil, fault.Locate(err, at, true, path)
	}
	return wire.NewInnerCursor(plain, at, path), nil
}

// Check compares an offset index with its chunk: the pages must lie in it one after another, and the first rows must
// ascend.
func (x *OffsetIndex) Check(chunk fault.Span, base, rows int64, path string) error {
	end, last := chunk.Off, int64(-1)
	for i, off := range x.Offsets {
		path := fmt.Sprintf("%s.page_locations[%d]", path, i)
		if size := int64(x.Sizes[i]); off < end-base || size < 0 || size > chunk.End()-base-off {
			return fault.Corruptf(x.At, path,
				"%d bytes at %d are not in the column chunk after the previous page", size, off)
		}
		end = base + off + int64(x.Sizes[i])
		if f := x.FirstRow[i]; i == 0 && f != 0 || f < last || f > rows {
			return fault.Corruptf(x.At, path+".first_row_index", "%d after %d in a row group of %s", f, last,
				fault.Count(rows, "row"))
		}
		last = x.FirstRow[i]
	}
	return nil
}

// RowsOf returns the range of the row group's rows in page k; rows is the number of rows in the row group.
func (x *OffsetIndex) RowsOf(k int, rows int64) vec.Range {
	if k+1 < len(x.FirstRow) {
		rows = x.FirstRow[k+1]
	}
	return vec.Range{From: x.FirstRow[k], To: rows}
}

// PageStats returns the statistics of a page according to the column index.
func (x *ColumnIndex) PageStats(page int) *Stats {
	s := &Stats{AllNull: &x.NullPages[page]}
	if x.Nulls != nil {
		s.Nulls = &x.Nulls[page]
	}
	if !x.NullPages[page] {
		s.Min, s.Max = x.Min[page], x.Max[page]
	}
	return s
}
