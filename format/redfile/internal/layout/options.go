package layout

import "stoa/format/option"

// Options are the options of Open; they are documented at redfile.ReadOptions.
type Options struct {
	UTF8    bool
	Outside bool
	NoIndex bool
	Schema  string
}

// ReadTable are the options of Open.
var ReadTable = option.Table[Options]{Format: "redfile", For: "reading", Options: []option.Option[Options]{
	option.Bool("utf8", "show BYTE_ARRAY columns as text if the file does not say what they are (default false: "+
		"binary)", func(o *Options) *bool { return &o.UTF8 }),
	option.Bool("outside", "follow a file_path that leads out of the directory of the file (default false)",
		func(o *Options) *bool { return &o.Outside }),
	option.Not("index", "use index pages (default true)", func(o *Options) *bool { return &o.NoIndex }),
	option.Text("schema", "FILE", "the columns of a file of generation A or B, or, for recover, of one that has lost "+
		"its metadata, are those of this intact RedFile, or those that FILE says, as stoa schema -f json prints them",
		func(o *Options) *string { return &o.Schema }),
}}

// ReadOptions are the parsed options of Open, and settings that are not options.
type ReadOptions struct {
	Options
	ArrowSchema string // replaces the Arrow schema in the metadata, encoded by schema.SchemaText; see reread
}

// ParseOptions parses the options of Open. An unknown key or value is an error of class Invalid.
func ParseOptions(opts map[string]string) (o ReadOptions, err error) {
	o.Options, err = ReadTable.Parse(opts)
	return o, err
}
