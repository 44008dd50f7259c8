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

// The properties in a lost footer can be taken from a schema in the form that `stoa schema -f json` prints: a column's
// type and nullability and, if the schema is that of a CFile, its metadata stoa.type, stoa.encoding and
// stoa.compression. Properties that the schema leaves open are found by trying.

// SchemaColumns are the columns of the schema file in option schema, by their dotted paths; nil without the option.
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

// OfFile completes o from the schema for the file tg. It uses the column that is named like option name or like the
// file, or else the schema's only column. The error is Invalid if there is no such column.
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
		return o, fault.Invalidf("cfile: %s has %s, but none is named %s: pass option name=NAME with that of "+
			"the file", o.schema, fault.Count(len(fields), "column"), cmp.Or(o.Name, base))
	}
	for name, f := range fields {
		return o.With(f, cmp.Or(o.Name, name))
	}
	return o, nil
}

// With returns o with the properties that it leaves open taken from field f of the schema; name is the column's name.
// The error is Invalid for a type that no column file can have.
func (o ReadOptions) With(f format.SchemaField, name string) (ReadOptions, error) {
	precision, scale := 0, -1
	typeName := cmp.Or(f.Metadata[block.MetaType], usualTypes[strings.SplitN(f.Type, "[", 2)[0]])
	if _, err := fmt.Sscanf(f.Type, "decimal128(%d, %d)", &precision, &scale); err == nil && typeName == "" {
		typeName = block.Decimal128.String()
	}
	typ, err := block.TypeOption(typeName)
	if err != nil {
		return o, fault.Invalidf("cfile: %s: column %s: %s is not the type of a CFile that could be recovered",
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
	// in the schema of another format a nullable column need not have nulls
	if f.Metadata[block.MetaVersion] != "" && !o.NullableSet {
		o.Nullable, o.NullableSet = f.Nullable, true
	}
	return o, nil
}

// usualTypes maps names of Arrow types to the names of the types as which a CFile stores them.
var usualTypes = map[string]string{"uint8": "uint8", "int8": "int8", "uint16": "uint16", "int16": "int16",
	"uint32": "uint32", "int32": "int32", "uint64": "uint64",
	"int64": "int64", "utf8": "string", "large_utf8": "string", "binary": "binary", "large_binary": "binary",
	"bool": "bool", "float32": "float", "float64": "double",
	"timestamp": "unixtime_micros", "date32": "date", "time32": "int32", "time64": "int64", "duration": "int64"}
