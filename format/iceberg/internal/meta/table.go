package meta

import "encoding/json"

// Table is the metadata of a table: metadata/*.metadata.json.
type Table struct {
	FormatVersion      int               `json:"format-version"`
	UUID               string            `json:"table-uuid"`
	Location           string            `json:"location"`
	LastSequence       int64             `json:"last-sequence-number"`
	LastUpdated        int64             `json:"last-updated-ms"`
	LastColumn         int               `json:"last-column-id"`
	CurrentSchema      int               `json:"current-schema-id"`
	Schemas            []Schema          `json:"schemas"`
	DefaultSpec        int               `json:"default-spec-id"`
	Specs              []Spec            `json:"partition-specs"`
	LastPartition      int               `json:"last-partition-id"`
	DefaultSort        int               `json:"default-sort-order-id"`
	SortOrders         []SortOrder       `json:"sort-orders"`
	Properties         map[string]string `json:"properties"`
	CurrentSnapshot    *int64            `json:"current-snapshot-id,omitempty"`
	Snapshots          []Snapshot        `json:"snapshots"`
	SnapshotLog        []SnapshotEntry   `json:"snapshot-log"`
	MetadataLog        []MetadataEntry   `json:"metadata-log"`
	Refs               map[string]Ref    `json:"refs,omitempty"`
	NextRow            *int64            `json:"next-row-id,omitempty"`
	Statistics         []json.RawMessage `json:"statistics"`
	PartitionStatistic []json.RawMessage `json:"partition-statistics"`

	// of format version 1
	V1Schema *Schema     `json:"schema,omitempty"`
	V1Spec   []SpecField `json:"partition-spec,omitempty"`
}

// Schema is a schema of a table.
type Schema struct {
	Type        string  `json:"type"`
	ID          int     `json:"schema-id"`
	Identifiers []int   `json:"identifier-field-ids,omitempty"`
	Fields      []Field `json:"fields"`
}

// Spec is a partition spec.
type Spec struct {
	ID     int         `json:"spec-id"`
	Fields []SpecField `json:"fields"`
}

// SpecField is a field of a partition spec.
type SpecField struct {
	Source    int    `json:"source-id"`
	Sources   []int  `json:"source-ids,omitempty"`
	ID        int    `json:"field-id"`
	Name      string `json:"name"`
	Transform string `json:"transform"`
}

// SortOrder is an order of rows.
type SortOrder struct {
	ID     int         `json:"order-id"`
	Fields []SortField `json:"fields"`
}

// SortField is a field of an order.
type SortField struct {
	Transform string `json:"transform"`
	Source    int    `json:"source-id"`
	Direction string `json:"direction"`
	Nulls     string `json:"null-order"`
}

// Snapshot is a state of the table.
type Snapshot struct {
	ID           int64             `json:"snapshot-id"`
	Parent       *int64            `json:"parent-snapshot-id,omitempty"`
	Sequence     int64             `json:"sequence-number"`
	Time         int64             `json:"timestamp-ms"`
	ManifestList string            `json:"manifest-list,omitempty"`
	Manifests    []string          `json:"manifests,omitempty"` // of format version 1
	Summary      map[string]string `json:"summary"`
	SchemaID     *int              `json:"schema-id,omitempty"`
	FirstRow     *int64            `json:"first-row-id,omitempty"`
	AddedRows    *int64            `json:"added-rows,omitempty"`
}

// SnapshotEntry is an entry of the history of current snapshots.
type SnapshotEntry struct {
	Time int64 `json:"timestamp-ms"`
	ID   int64 `json:"snapshot-id"`
}

// MetadataEntry is an entry of the history of metadata files.
type MetadataEntry struct {
	Time int64  `json:"timestamp-ms"`
	File string `json:"metadata-file"`
}

// Ref is a branch or a tag.
type Ref struct {
	ID   int64  `json:"snapshot-id"`
	Type string `json:"type"`
}

// Schema returns the schema with the given id.
func (t *Table) Schema(id int) *Schema {
	for i := range t.Schemas {
		if t.Schemas[i].ID == id {
			return &t.Schemas[i]
		}
	}
	if len(t.Schemas) == 0 {
		return t.V1Schema
	}
	return nil
}

// Spec returns the partition spec with the given id.
func (t *Table) Spec(id int) *Spec {
	for i := range t.Specs {
		if t.Specs[i].ID == id {
			return &t.Specs[i]
		}
	}
	if len(t.Specs) == 0 {
		return &Spec{Fields: t.V1Spec}
	}
	return nil
}

// Snapshot returns the snapshot with the given id.
func (t *Table) Snapshot(id int64) *Snapshot {
	for i := range t.Snapshots {
		if t.Snapshots[i].ID == id {
			return &t.Snapshots[i]
		}
	}
	return nil
}
