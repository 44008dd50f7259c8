package layout

import "stoa/internal/thrift"

// Header is FileHeader, with which files of format 3 and streaming files begin.
type Header struct {
	Version    int32
	Columns    []ColumnSchema
	Footer     bool   // is_footer_present; false: a row-format (streaming) file
	HasFooter  bool   // the field is_footer_present is present
	Stamp      int64  // milliseconds since 1970: time of the last schema change
	Sync       []byte // 16 bytes between the blocklets of a streaming file
	Compressor string
}

// ParseHeader reads FileHeader. Errors are those of r.
func ParseHeader(r *thrift.Reader, name string) (h Header) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			h.Version = r.I32("version")
		case 2:
			h.Columns = parseColumnSchemas(r, "column_schema")
		case 3:
			h.Footer = r.Bool("is_footer_present")
			h.HasFooter = true
		case 4:
			h.Stamp = r.I64("time_stamp")
		case 5:
			r.Bool("is_splitable")
		case 6:
			h.Sync = r.Bytes("sync_marker")
		case 7:
			h.Compressor = r.String("compressor_name")
		}
	}
	return h
}
