package carbon

import "stoa/internal/thrift"

// header is FileHeader, with which files of format 3 and streaming files begin.
type header struct {
	version    int32
	columns    []columnSchema
	footer     bool // false: a row-format (streaming) file
	hasFooter  bool // the field is there
	stamp      int64
	splitable  bool
	sync       []byte // 16 bytes between the blocklets of a streaming file
	compressor string
}

func parseHeader(r *thrift.Reader, name string) (h header) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			h.version = r.I32("version")
		case 2:
			h.columns = parseColumnSchemas(r, "column_schema")
		case 3:
			h.footer = r.Bool("is_footer_present")
			h.hasFooter = true
		case 4:
			h.stamp = r.I64("time_stamp")
		case 5:
			h.splitable = r.Bool("is_splitable")
		case 6:
			h.sync = r.Bytes("sync_marker")
		case 7:
			h.compressor = r.String("compressor_name")
		}
	}
	return h
}
