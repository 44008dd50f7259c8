package carbon

import (
	"stoa/internal/thrift"
)

// footer is FileFooter (formats 1 and 2) or FileFooter3.
type footer struct {
	version  int32 // of FileFooter; 3 for FileFooter3
	rows     int64
	columns  []columnSchema // of FileFooter
	segment  segmentInfo
	index    []blockletIndex
	blocklet []blockletInfo
	sorted   bool
	extra    map[string]string
}

// blockletInfo is BlockletInfo, BlockletInfo2 or BlockletInfo3.
type blockletInfo struct {
	whole int // recovering: column chunks that are there, if not all are; 0: all

	rows    int64
	chunks  []dataChunk // format 1
	offsets []int64     // of the column chunks; formats 2 and 3
	lengths []int32     // of their metadata
	dims    int64       // where the dimensions end, format 3
	end     int64       // where the measures end, format 3
	pages   int32
	inPage  []int32    // rows of each page; nil in old files
	old     []*oldPage // what is written of format 1
}

// parseFooter3 reads FileFooter3.
func parseFooter3(r *thrift.Reader, name string) (f footer) {
	f.version = 3
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			f.rows = r.I64("num_rows")
		case 2:
			f.segment = parseSegmentInfo(r, "segment_info")
		case 3:
			for range r.List("blocklet_index_list", thrift.Struct) {
				f.index = append(f.index, parseBlockletIndex(r, ""))
			}
		case 4:
			for range r.List("blocklet_info_list3", thrift.Struct) {
				f.blocklet = append(f.blocklet, parseBlockletInfo3(r, ""))
			}
		case 5:
			parseDictionaryChunk(r, "dictionary")
		case 6:
			f.sorted = r.Bool("is_sort")
		case 7:
			f.extra = parsePairs(r, "extra_info")
		}
	}
	return f
}

// parseFooter12 reads FileFooter, of formats 1 and 2.
func parseFooter12(r *thrift.Reader, name string) (f footer) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			f.version = r.I32("version")
		case 2:
			f.rows = r.I64("num_rows")
		case 3:
			f.columns = parseColumnSchemas(r, "table_columns")
		case 4:
			f.segment = parseSegmentInfo(r, "segment_info")
		case 5:
			for range r.List("blocklet_index_list", thrift.Struct) {
				f.index = append(f.index, parseBlockletIndex(r, ""))
			}
		case 6:
			for range r.List("blocklet_info_list", thrift.Struct) {
				f.blocklet = append(f.blocklet, parseBlockletInfo1(r, ""))
			}
		case 7:
			for range r.List("blocklet_info_list2", thrift.Struct) {
				f.blocklet = append(f.blocklet, parseBlockletInfo2(r, ""))
			}
		case 8:
			parseDictionaryChunk(r, "dictionary")
		}
	}
	return f
}

func parseBlockletInfo1(r *thrift.Reader, name string) (b blockletInfo) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			b.rows = int64(r.I32("num_rows"))
		case 2:
			for range r.List("column_data_chunks", thrift.Struct) {
				b.chunks = append(b.chunks, parseDataChunk1(r, ""))
			}
		}
	}
	return b
}

func parseBlockletInfo2(r *thrift.Reader, name string) (b blockletInfo) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			b.rows = int64(r.I32("num_rows"))
		case 2:
			b.offsets = parseI64s(r, "column_data_chunks_offsets")
		case 3:
			for range r.List("column_data_chunks_length", thrift.I16) {
				b.lengths = append(b.lengths, int32(r.I16("")))
			}
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

func parseBlockletInfo3(r *thrift.Reader, name string) (b blockletInfo) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			b.rows = int64(r.I32("num_rows"))
		case 2:
			b.offsets = parseI64s(r, "column_data_chunks_offsets")
		case 3:
			b.lengths = parseI32s(r, "column_data_chunks_length")
		case 4:
			b.dims = r.I64("dimension_offsets")
		case 5:
			b.end = r.I64("measure_offsets")
		case 6:
			b.pages = r.I32("number_number_of_pages")
		case 7:
			b.inPage = parseI32s(r, "row_count_in_page")
		}
	}
	return b
}
