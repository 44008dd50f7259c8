package table

import "stoa/format/option"

// ReadOptions are the options of Open; package trevni documents them.
type ReadOptions struct {
	Sorted []string
	Schema string
}

// ReadTable are the options of Open.
var ReadTable = option.Table[ReadOptions]{Format: "trevni", For: "reading", Options: []option.Option[ReadOptions]{
	option.List("sorted", "NAME,NAME,…", "columns that are known to be sorted: those with first values are then "+
		"searched by them", func(o *ReadOptions) *[]string { return &o.Sorted }),
	option.Text("schema", "FILE", "of the wiki's and Impala's dialects: the columns are those of the schema in FILE "+
		"(as stoa schema -f json prints it), whatever the file says of it",
		func(o *ReadOptions) *string { return &o.Schema }),
}}

// readOptions are the options of Open, parsed.
type readOptions struct {
	sorted []string
	schema string
}

// ParseOptions parses the options of Open. An unknown key or value is an error of class Invalid.
func ParseOptions(opts map[string]string) (readOptions, error) {
	o, err := ReadTable.Parse(opts)
	return readOptions{o.Sorted, o.Schema}, err
}
