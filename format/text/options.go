package text

import (
	"stoa/format"
	"stoa/format/option"
)

// CSVWriteOptions are the options for writing CSV and TSV, for stoa.CreateOptions.Typed. The zero value of each is the
// default.
type CSVWriteOptions struct {
	NoHeader  bool   // no header with the names is written
	Delimiter byte   // an ASCII character between fields; 0: a comma, in TSV a tab
	Null      string // the text of null; an empty string is written as ""
	Gzip      *bool  // compress; nil: if the name ends in .gz
}

// CSVReadOptions are the options for reading CSV and TSV, for stoa.OpenOptions.Typed. The zero value of each is the
// default.
type CSVReadOptions struct {
	NoHeader  bool   // the first line is a row; columns are c1, c2, …
	Delimiter byte   // an ASCII character between fields; 0: a comma, in TSV a tab
	Null      string // unquoted text that means null
	Types     Types  // of columns
	Schema    string // names and types of all columns, such as id: int64, at: timestamp[us]
}

// JSONLWriteOptions are the options for writing JSON lines, for stoa.CreateOptions.Typed. The zero value of each is the
// default.
type JSONLWriteOptions struct {
	Gzip *bool // compress; nil: if the name ends in .gz
}

// JSONLReadOptions are the options for reading JSON lines, for stoa.OpenOptions.Typed. The zero value of each is the
// default.
type JSONLReadOptions struct {
	Types   Types   // of fields
	Schema  string  // names and types of all fields, such as id: int64, tags: list<utf8>
	Unknown Unknown // keys that are not in the schema
}

// Types is the source of the types of columns, or fields.
type Types string

const (
	TypesInfer  Types = "infer" // from the first 1000 rows or 4 MiB; the default
	TypesString Types = "string"
)

// Unknown is the treatment of keys that are not in the schema.
type Unknown string

const (
	UnknownError  Unknown = "error" // the default
	UnknownIgnore Unknown = "ignore"
)

var (
	csvWriting = option.Table[CSVWriteOptions]{Format: "csv", For: "writing", Options: []option.Option[CSVWriteOptions]{
		option.Not("header", "whether the first line has the names (default true)",
			func(o *CSVWriteOptions) *bool { return &o.NoHeader }),
		delimiter(func(o *CSVWriteOptions) *byte { return &o.Delimiter }),
		option.Text("null", "TEXT", `the text of null (default nothing; an empty string is "")`,
			func(o *CSVWriteOptions) *string { return &o.Null }),
		gzipped(func(o *CSVWriteOptions) **bool { return &o.Gzip }),
	}}
	csvReading = option.Table[CSVReadOptions]{Format: "csv", For: "reading", Options: []option.Option[CSVReadOptions]{
		option.Not("header", "whether the first line has the names (default true); without, columns are c1, c2, …",
			func(o *CSVReadOptions) *bool { return &o.NoHeader }),
		delimiter(func(o *CSVReadOptions) *byte { return &o.Delimiter }),
		option.Text("null", "TEXT", `unquoted text that means null (default nothing; "" is an empty string)`,
			func(o *CSVReadOptions) *string { return &o.Null }),
		typesOf("columns", func(o *CSVReadOptions) *Types { return &o.Types }),
		option.Text("schema", "NAME: TYPE, …",
			"names and types of all columns, such as id: int64, at: timestamp[us]",
			func(o *CSVReadOptions) *string { return &o.Schema }),
	}}
	jsonlWriting = option.Table[JSONLWriteOptions]{Format: "jsonl", For: "writing",
		Options: []option.Option[JSONLWriteOptions]{gzipped(func(o *JSONLWriteOptions) **bool { return &o.Gzip })}}
	jsonlReading = option.Table[JSONLReadOptions]{Format: "jsonl", For: "reading",
		Options: []option.Option[JSONLReadOptions]{
			typesOf("fields", func(o *JSONLReadOptions) *Types { return &o.Types }),
			option.Text("schema", "NAME: TYPE, …",
				"names and types of all fields, such as id: int64, tags: list<utf8>",
				func(o *JSONLReadOptions) *string { return &o.Schema }),
			option.Pick("unknown", "keys that are not in the schema: an error or ignored (default error)",
				func(o *JSONLReadOptions) *Unknown { return &o.Unknown }, UnknownError, UnknownIgnore),
		}}
)

// named returns an option table whose errors name another format.
func named[S any](t option.Table[S], format string) *option.Table[S] {
	t.Format = format
	return &t
}

// typesOf returns the option types; of is what the format has of them.
func typesOf[S any](of string, at func(*S) *Types) option.Option[S] {
	return option.Pick("types", "types from the first 1000 rows or 4 MiB (default), or text for all "+of, at,
		TypesInfer, TypesString)
}

// gzipped returns the option gzip; stoa.Create sets it if the name ends in .gz.
func gzipped[S any](at func(*S) **bool) option.Option[S] {
	return option.Tri("gzip", "whether the text is compressed with gzip (default: if the name ends in .gz)", at)
}

func delimiter[S any](at func(*S) *byte) option.Option[S] {
	return option.Custom(format.OptionKey{Name: "delimiter", Values: "C",
		Help: "separator of fields: an ASCII character, or tab"}, at,
		func(c *byte, v string) (wanted string) {
			if v == "tab" || v == `\t` {
				v = "\t"
			}
			if len(v) != 1 || v[0] >= 0x80 || v[0] == 0 || v[0] == '"' || v[0] == '\n' || v[0] == '\r' {
				return "one ASCII character (not a quote or the end of a line), or tab,"
			}
			*c = v[0]
			return ""
		},
		func(c *byte) (string, bool) {
			if *c == '\t' {
				return "tab", true
			}
			return string(rune(*c)), *c != 0
		})
}

// Strings returns the options as strings, as in --opt.
func (o CSVWriteOptions) Strings() map[string]string { return csvWriting.Strings(&o) }

// Strings returns the options as strings, as in --source-opt.
func (o CSVReadOptions) Strings() map[string]string { return csvReading.Strings(&o) }

// Strings returns the options as strings, as in --opt.
func (o JSONLWriteOptions) Strings() map[string]string { return jsonlWriting.Strings(&o) }

// Strings returns the options as strings, as in --source-opt.
func (o JSONLReadOptions) Strings() map[string]string { return jsonlReading.Strings(&o) }

// Formats returns the names of the formats that the options are for.
func (CSVWriteOptions) Formats() []string { return []string{"csv", "tsv"} }

// Formats returns the names of the formats that the options are for.
func (CSVReadOptions) Formats() []string { return []string{"csv", "tsv"} }

// Formats returns the names of the formats that the options are for.
func (JSONLWriteOptions) Formats() []string { return []string{"jsonl"} }

// Formats returns the names of the formats that the options are for.
func (JSONLReadOptions) Formats() []string { return []string{"jsonl"} }
