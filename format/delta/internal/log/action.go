package log

import (
	"encoding/json"
	"strconv"
)

// Dir is the directory of the log, below that of the table.
const Dir = "_delta_log"

// Action is a line of a version: one of its fields is set.
type Action struct {
	CommitInfo map[string]any `json:"commitInfo,omitempty"`
	Protocol   *Protocol      `json:"protocol,omitempty"`
	MetaData   *MetaData      `json:"metaData,omitempty"`
	Add        *Add           `json:"add,omitempty"`
	Remove     *Remove        `json:"remove,omitempty"`
	Sidecar    *Sidecar       `json:"sidecar,omitempty"`
}

// Protocol states the requirements on readers and writers of the table.
type Protocol struct {
	MinReader      int      `json:"minReaderVersion"`
	MinWriter      int      `json:"minWriterVersion"`
	ReaderFeatures []string `json:"readerFeatures,omitempty"`
	WriterFeatures []string `json:"writerFeatures,omitempty"`
}

// MetaData describes the table.
type MetaData struct {
	ID            string   `json:"id"`
	Name          string   `json:"name,omitempty"`
	Description   string   `json:"description,omitempty"`
	Format        Format   `json:"format"`
	Schema        string   `json:"schemaString"`
	Partitions    []string `json:"partitionColumns"`
	Configuration Texts    `json:"configuration"`
	Created       *int64   `json:"createdTime,omitempty"`
}

// Format is the format of the files.
type Format struct {
	Provider string `json:"provider"`
	Options  Texts  `json:"options"`
}

// Values are texts by name; null is nil. Checkpoints store them as pairs.
type Values map[string]*string

// UnmarshalJSON implements json.Unmarshaler.
func (v *Values) UnmarshalJSON(b []byte) error {
	var pairs []struct {
		Key   string  `json:"key"`
		Value *string `json:"value"`
	}
	if len(b) > 0 && b[0] != '[' {
		return json.Unmarshal(b, (*map[string]*string)(v))
	}
	if err := json.Unmarshal(b, &pairs); err != nil {
		return err
	}
	*v = Values{}
	for _, p := range pairs {
		(*v)[p.Key] = p.Value
	}
	return nil
}

// Texts are Values without nulls.
type Texts map[string]string

// UnmarshalJSON implements json.Unmarshaler.
func (t *Texts) UnmarshalJSON(b []byte) error {
	var v Values
	if err := v.UnmarshalJSON(b); err != nil {
		return err
	}
	*t = Texts{}
	for k, x := range v {
		if x != nil {
			(*t)[k] = *x
		}
	}
	return nil
}

// Add is a file that is part of the table.
type Add struct {
	Path      string  `json:"path"` // relative, encoded as in a URL
	Partition Values  `json:"partitionValues"`
	Size      int64   `json:"size"`
	Modified  int64   `json:"modificationTime"`
	Changed   bool    `json:"dataChange"`
	Stats     string  `json:"stats,omitempty"`
	Vector    *Vector `json:"deletionVector,omitempty"`
}

// Remove is a file that is no longer part of the table.
type Remove struct {
	Path      string  `json:"path"`
	Deleted   int64   `json:"deletionTimestamp,omitempty"`
	Changed   bool    `json:"dataChange"`
	Extended  bool    `json:"extendedFileMetadata,omitempty"` // the next two are there
	Partition Values  `json:"partitionValues,omitempty"`
	Size      int64   `json:"size,omitempty"`
	Vector    *Vector `json:"deletionVector,omitempty"`
}

// Vector is a deletion vector: the deleted rows of a file.
type Vector struct {
	Storage     string `json:"storageType"` // u: a file by its UUID; p: a file by its path; i: in the action
	Path        string `json:"pathOrInlineDv"`
	Offset      *int64 `json:"offset,omitempty"`
	Size        int64  `json:"sizeInBytes"`
	Cardinality int64  `json:"cardinality"`
}

// ID identifies a vector among those of a table.
func (v *Vector) ID() string {
	if v == nil {
		return ""
	}
	if v.Offset == nil {
		return v.Storage + v.Path
	}
	return v.Storage + v.Path + "@" + strconv.FormatInt(*v.Offset, 10)
}

// Sidecar is a file with actions of a checkpoint.
type Sidecar struct {
	Path string `json:"path"`
	Size int64  `json:"sizeInBytes"`
}

// Stats are the statistics of a file's values.
type Stats struct {
	Rows  *int64         `json:"numRecords"`
	Min   map[string]any `json:"minValues,omitempty"`
	Max   map[string]any `json:"maxValues,omitempty"`
	Nulls map[string]any `json:"nullCount,omitempty"`
	Tight *bool          `json:"tightBounds,omitempty"` // false: null counts are approximate; nil: exact
}
