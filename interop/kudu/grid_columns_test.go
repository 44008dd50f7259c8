package kudu

// gridColumns is every type with every encoding that Kudu has for it; compression and nullability are open.
func gridColumns() []column {
	var out []column
	for _, t := range []struct {
		typ        string
		prec, size int
		encs       []string
	}{
		{"BOOL", 0, 0, []string{"PLAIN_ENCODING", "RLE"}},
		{"INT8", 0, 0, fixed}, {"INT16", 0, 0, fixed}, {"INT32", 0, 0, fixed}, {"INT64", 0, 0, fixed},
		{"UINT8", 0, 0, fixed}, {"UINT16", 0, 0, fixed}, {"UINT32", 0, 0, fixed}, {"UINT64", 0, 0, fixed},
		{"INT128", 0, 0, fixed[:2]},
		{"FLOAT", 0, 0, fixed[:2]}, {"DOUBLE", 0, 0, fixed[:2]},
		{"UNIXTIME_MICROS", 0, 0, fixed}, {"DATE", 0, 0, fixed},
		{"DECIMAL32", 9, 0, fixed}, {"DECIMAL64", 18, 0, fixed}, {"DECIMAL128", 38, 0, fixed[:2]},
		{"STRING", 0, 0, varied}, {"BINARY", 0, 0, varied}, {"VARCHAR", 0, 50, varied},
	} {
		for _, e := range t.encs {
			c := column{Name: "v", Type: t.typ, Enc: e, Prec: t.prec, Len: t.size}
			if t.prec > 0 {
				c.Scale = 2
			}
			out = append(out, c)
		}
	}
	return out
}

var (
	fixed  = []string{"PLAIN_ENCODING", "BIT_SHUFFLE", "RLE"}
	varied = []string{"PLAIN_ENCODING", "PREFIX_ENCODING", "DICT_ENCODING"}
)
