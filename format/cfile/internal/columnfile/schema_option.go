package columnfile

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
)

// What a lost footer said can be known by a schema, as `stoa schema -f json` prints it: of a column the type and
// whether it may be null; its metadata stoa.type, stoa.encoding and stoa.compression say the rest, if it was
// that of a CFile. What it leaves open is found by trying.

// SchemaColumns are those of the schema that option schema names, by their dotted paths; nil without the option.
func (o *ReadOptions) SchemaColumns(ctx context.Context, tg format.Target) (map[string]format.SchemaField, error) {
	if o.schema == "" {
		return nil, nil
	}
	listed, err := format.ReadSchemaFile(ctx, tg.Tree, o.schema)
	if err != nil {
		return nil, err
	}
	out := map[string]format.SchemaField{}
	var add func(prefix string, fields []format.SchemaField)
	add = func(prefix string, fields []format.SchemaField) {
		for _, f := range fields {
			if name := prefix + f.Name; f.Type == "struct" {
				add(name+".", f.Children)
			} else {
				out[name] = f
			}
		}
	}
	add("", listed)
	return out, nil
}

// OfFile is what the schema says of one file: of its only column, or of the one that has the name of the
// option or of the file.
func (o ReadOptions) OfFile(ctx context.Context, tg format.Target) (ReadOptions, error) {
	fields, err := o.SchemaColumns(ctx, tg)
	if fields == nil {
		return o, err
	}
	base := path.Base(tg.Name)
	for _, name := range []string{o.Name, strings.TrimSuffix(base, path.Ext(base)), base} {
		if f, ok := fields[name]; ok && (name == o.Name || o.Name == "") {
			return o.With(f, name)
		}
	}
	if len(fields) > 1 {
		return o, fault.Invalidf("cfile: %s has %d columns, and none is called %s: option name=NAME says which "+
			"one the file is", o.schema, len(fields), cmp.Or(o.Name, base))
	}
	for name, f := range fields {
		return o.With(f, cmp.Or(o.Name, name))
	}
	return o, nil
}

// With is o with what the field f says and o leaves open.
func (o ReadOptions) With(f format.SchemaField, name string) (ReadOptions, error) {
	precision, scale := 0, -1
	word := cmp.Or(f.Metadata[block.MetaType], usualTypes[strings.SplitN(f.Type, "[", 2)[0]])
	if _, err := fmt.Sscanf(f.Type, "decimal128(%d, %d)", &precision, &scale); err == nil && word == "" {
		word = block.Decimal128.String()
	}
	typ, err := block.TypeOption(word)
	if err != nil {
		return o, fault.Invalidf("cfile: %s: column %s: %s is no type of a CFile's column that could be recovered",
			o.schema, name, f.Type)
	}
	o.Name = cmp.Or(o.Name, name)
	if o.Typ < 0 {
		o.Typ = typ
	}
	if o.precision == 0 {
		o.precision = precision
	}
	if o.Scale < 0 {
		o.Scale = scale
	}
	if e := block.EncodingByName(f.Metadata[block.MetaEncoding]); o.Encoding == block.AutoEncoding {
		o.Encoding = e
	}
	if c := block.CompressionByName(f.Metadata[block.MetaCompression]); o.Compression == block.DefaultCompression {
		o.Compression = c
	}
	// else the schema may be that of a file that had no other way to say it
	if f.Metadata[block.MetaVersion] != "" && !o.NullableSet {
		o.Nullable, o.NullableSet = f.Nullable, true
	}
	return o, nil
}

// usualTypes is the type in which a CFile has values of an Arrow type, by their names.
var usualTypes = map[string]string{"uint8": "uint8", "int8": "int8", "uint16": "uint16", "int16": "int16",
	"uint32": "uint32", "int32": "int32", "uint64": "uint64",
	"int64": "int64", "utf8": "string", "large_utf8": "string", "binary": "binary", "large_binary": "binary",
	"bool": "bool", "float32": "float", "float64": "double",
	"timestamp": "unixtime_micros", "date32": "date", "time32": "int32", "time64": "int64", "duration": "int64"}
