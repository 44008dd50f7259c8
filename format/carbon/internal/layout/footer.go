package layout

import (
	"stoa/internal/thrift"
)

// Footer is FileFooter (formats 1 and 2) or FileFooter3. Index and Blocklet have one element per blocklet.
type Footer struct {
	Version  int32 // of FileFooter; 3 for FileFooter3
	Rows     int64
	Columns  []ColumnSchema // of FileFooter; in format 3 the header has them
	Segment  SegmentInfo
	Index    []BlockletIndex
	Blocklet []BlockletInfo
	Sorted   bool
	Extra    map[string]string
}

// BlockletInfo is BlockletInfo, BlockletInfo2 or BlockletInfo3.
type BlockletInfo struct {
	ChunksFound int // in recovery: number of column chunks found, counted from the first; 0: all

	Rows          int64
	Chunks        []DataChunk // format 1
	Offsets       []int64     // of the column chunks, in bytes from the start of the file; formats 2 and 3
	Lengths       []int32     // of their metadata, in bytes
	DimensionsEnd int64       // offset of the end of the dimensions, format 3
	MeasuresEnd   int64       // offset of the end of the measures, format 3
	Pages         int32
	PageRows      []int32    // rows of each page; nil: the writer did not record them
	V12           []*V12Page // used by the writer of format 1
}

// ParseFooter3 reads FileFooter3. Errors are those of r.
func ParseFooter3(r *thrift.Reader, name string) (f Footer) {
	f.Version = 3
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			f.Rows = r.I64("num_rows")
		case 2:
			f.Segment = parseSegmentInfo(r, "segment_info")
		case 3:
			for range r.List("blocklet_index_list", thrift.Struct) {
				f.Index = append(f.Index, ParseBlockletIndex(r, ""))
			}
		case 4:
			for range r.List("blocklet_info_list3", thrift.Struct) {
				f.Blocklet = append(f.Blocklet, parseBlockletInfo3(r, ""))
			}
		case 5:
			ParseDictionaryChunk(r, "dictionary")
		case 6:
			f.Sorted = r.Bool("is_sort")
		case 7:
			f.Extra = parsePairs(r, "extra_info")
		}
	}
	return f
}

// ParseFooter12 reads FileFooter, of formats 1 and 2. These formats are frozen, so an unknown field means a damaged
// field number.
func ParseFooter12(r *thrift.Reader, name string) (f Footer) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			f.Version = r.I32("version")
		case 2:
			f.Rows = r.I64("num_rows")
		case 3:
			f.Columns = parseColumnSchemas(r, "table_columns")
		case 4:
			f.Segment = parseSegmentInfo(r, "segment_info")
		case 5:
			for range r.List("blocklet_index_list", thrift.Struct) {
				f.Index = append(f.Index, ParseBlockletIndex(r, ""))
			}
		case 6:
			for range r.List("blocklet_info_list", thrift.Struct) {
				f.Blocklet = append(f.Blocklet, ParseBlockletInfo1(r, ""))
			}
		case 7:
			for range r.List("blocklet_info_list2", thrift.Struct) {
				f.Blocklet = append(f.Blocklet, parseBlockletInfo2(r, ""))
			}
		case 8:
			ParseDictionaryChunk(r, "dictionary")
		default:
			r.UnexpectedField()
		}
	}
	return f
}

// ParseBlockletInfo1 reads BlockletInfo of format 1.
func ParseBlockletInfo1(r *thrift.Reader, name string) (b BlockletInfo) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			b.Rows = int64(r.I32("num_rows"))
		case 2:
			for range r.List("column_data_chunks", thrift.Struct) {
				b.Chunks = append(b.Chunks, parseDataChunk1(r, ""))
			}
		default:
			r.UnexpectedField()
		}
	}
	return b
}

func parseBlockletInfo2(r *thrift.Reader, name string) (b BlockletInfo) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			b.Rows = int64(r.I32("num_rows"))
		case 2:
			b.Offsets = parseI64s(r, "column_data_chunks_offsets")
		case 3:
			for range r.List("column_data_chunks_length", thrift.I16) {
				b.Lengths = append(b.Lengths, int32(r.I16("")))
			}
		default:
			r.UnexpectedField()
		}
	}
	return b
}

func parseI64s(r *thrift.Reader, name string) (s []int64) {
	for range r.List(name, thrift.I64) {
		s = append(s, r.I64(""))
	}
	return s
}

func parseBlockletInfo3(r *thrift.Reader, name string) (b BlockletInfo) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			b.Rows = int64(r.I32("num_rows"))
		case 2:
			b.Offsets = parseI64s(r, "column_data_chunks_offsets")
		case 3:
			b.Lengths = ParseI32s(r, "column_data_chunks_length")
		case 4:
			b.DimensionsEnd = r.I64("dimension_offsets")
		case 5:
			b.MeasuresEnd = r.I64("measure_offsets")
		case 6:
			b.Pages = r.I32("number_number_of_pages")
		case 7:
			b.PageRows = ParseI32s(r, "row_count_in_page")
		}
	}
	return b
}

// ChunkEnd returns the offset at which column chunk i ends in a blocklet of format 3 with dims dimensions.
func (b *BlockletInfo) ChunkEnd(i, dims int) int64 {
	switch {
	case i == dims-1:
		return b.DimensionsEnd
	case i == len(b.Offsets)-1:
		return b.MeasuresEnd
	}
	return b.Offsets[i+1]
}

// SetPages sets the pages and rows of the blocklet from its column chunks when there is no footer. There must be at
// least one chunk. Every chunk has all rows; if one is damaged, the majority decides.
func (b *BlockletInfo) SetPages(chunks []ColumnChunk) {
	var sizes []int64
	for _, cc := range chunks {
		sizes = append(sizes, int64(len(cc.Pages)))
	}
	b.Rows, b.Pages = 0, int32(mostCommon(sizes))
	for i := range int(b.Pages) {
		var rows []int64
		for _, cc := range chunks {
			if len(cc.Pages) == int(b.Pages) {
				rows = append(rows, cc.Pages[i].Rows)
			}
		}
		n := mostCommon(rows)
		b.PageRows = append(b.PageRows, int32(n))
		b.Rows += n
	}
}

// mostCommon returns the most frequent number; of several, the first.
func mostCommon(numbers []int64) (most int64) {
	times, best := map[int64]int{}, 0
	for _, n := range numbers {
		times[n]++
	}
	for _, n := range numbers {
		if times[n] > best {
			most, best = n, times[n]
		}
	}
	return most
}
