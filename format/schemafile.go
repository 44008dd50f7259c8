package format

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"

	"stoa/fault"
	"stoa/store"
)

// SchemaField is a column of a schema, or a part of a nested column, in the form that `stoa schema -f json` prints.
// Type is a word with its parameters; Children are a list's element, a map's key and value, or a struct's fields.
type SchemaField struct {
	Name     string
	Type     string
	Nullable bool
	Children []SchemaField
	Metadata Texts
}

// Texts are the string members of a JSON object. Other members, such as bytes as {"base64": …}, are skipped.
type Texts map[string]string

// UnmarshalJSON reads an object.
func (t *Texts) UnmarshalJSON(b []byte) error {
	var all map[string]any
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	*t = Texts{}
	for k, v := range all {
		if s, ok := v.(string); ok {
			(*t)[k] = s
		}
	}
	return nil
}

// maxSchemaFile is the maximum size of a schema file in bytes.
const maxSchemaFile = 16 << 20

// ReadSchemaFile reads the fields of a schema, at least one, from a file of at most 16 MiB in the form that `stoa
// schema -f json` prints.
func ReadSchemaFile(ctx context.Context, tree store.Tree, name string) ([]SchemaField, error) {
	src, err := tree.Open(ctx, name)
	if errors.Is(err, fs.ErrNotExist) { // the caller's mistake, not a fault of the file that is read
		return nil, fault.Invalidf("the file of the schema: %v", err)
	}
	if err != nil {
		return nil, err
	}
	defer src.Close()
	at := fault.Span{Object: name, Len: src.Size()}
	if at.Len > maxSchemaFile {
		return nil, fault.Limitf(at, "", "%d bytes are more than a schema may have (%d)", at.Len, maxSchemaFile)
	}
	b := make([]byte, at.Len)
	if err := ReadFull(ctx, src, at, "", b); err != nil {
		return nil, err
	}
	return ParseSchema(name, b)
}

// ParseSchema is ReadSchemaFile for the text itself; name is the file's name in errors.
func ParseSchema(name string, b []byte) ([]SchemaField, error) {
	var doc struct{ Fields []SchemaField }
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, fault.Invalidf("%s: not a schema as `stoa schema -f json` prints it: %v", name, err)
	}
	if len(doc.Fields) == 0 {
		return nil, fault.Invalidf("%s: not a schema as `stoa schema -f json` prints it: it has no fields", name)
	}
	return doc.Fields, nil
}
