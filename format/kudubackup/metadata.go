package kudubackup

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format/cfile"
	"stoa/format/kudu"
)

// tableMetadata is a TableMetadataPB in protobuf's JSON form, where 64-bit numbers are strings.
type tableMetadata struct {
	Version    int                          `json:"version"`
	FromMs     string                       `json:"fromMs"` // 0 for a full backup
	ToMs       string                       `json:"toMs"`
	DataFormat string                       `json:"dataFormat"`
	TableName  string                       `json:"tableName"`
	TableID    string                       `json:"tableId"`
	Replicas   int                          `json:"numReplicas"`
	Columns    []columnMetadata             `json:"columns"`
	ColumnIDs  map[string]int32             `json:"columnIds"`
	Partitions partitionSchema              `json:"partitions"`
	Tablets    map[string]partitionMetadata `json:"tablets"`
	Owner      string                       `json:"tableOwner,omitempty"`
	Comment    string                       `json:"tableComment,omitempty"`
}

// columnMetadata is a ColumnMetadataPB.
type columnMetadata struct {
	Name          string          `json:"name"`
	Type          string          `json:"type"` // as Kudu's Java client names its types: INT8, UNIXTIME_MICROS, …
	Attributes    *typeAttributes `json:"typeAttributes,omitempty"`
	Key           bool            `json:"isKey,omitempty"`
	Nullable      bool            `json:"isNullable,omitempty"`
	Default       *string         `json:"defaultValue,omitempty"`
	Encoding      string          `json:"encoding"`
	Compression   string          `json:"compression"`
	BlockSize     int             `json:"blockSize,omitempty"`
	Comment       string          `json:"comment,omitempty"`
	AutoIncrement bool            `json:"isAutoIncrementing,omitempty"`
	Nested        *nestedType     `json:"nestedTypeDescriptor,omitempty"` // of type NESTED
}

// nestedType is a NestedTypeDescriptorMetadataPB, of which there are only arrays.
type nestedType struct {
	Array arrayType `json:"arrayDescriptor"`
}

type arrayType struct {
	Element string `json:"elemType"`
}

// typeAttributes is a ColumnTypeAttributesMetadataPB.
type typeAttributes struct {
	Precision int32 `json:"precision,omitempty"`
	Scale     int32 `json:"scale,omitempty"`
	Length    int   `json:"length,omitempty"`
}

// partitionSchema is a PartitionSchemaMetadataPB.
type partitionSchema struct {
	Hash   []hashPartition `json:"hashPartitions,omitempty"`
	Range  rangePartition  `json:"rangePartitions"`
	Custom []rangeAndHash  `json:"rangeAndHashPartitions,omitempty"`
}

type hashPartition struct {
	Columns []string `json:"columnNames"`
	Buckets int32    `json:"numBuckets"`
	Seed    int32    `json:"seed,omitempty"`
}

type rangePartition struct {
	Columns []string `json:"columnNames,omitempty"`
	Bounds  []bounds `json:"bounds,omitempty"`
}

type rangeAndHash struct {
	Bounds bounds          `json:"bounds"`
	Hash   []hashPartition `json:"hashPartitions,omitempty"`
}

// bounds is a RangeBoundsMetadataPB; a missing bound is unbounded.
type bounds struct {
	Lower []columnValue `json:"lowerBounds,omitempty"`
	Upper []columnValue `json:"upperBounds,omitempty"`
}

type columnValue struct {
	Column string `json:"columnName"`
	Value  string `json:"value"`
}

// partitionMetadata is a PartitionMetadataPB.
type partitionMetadata struct {
	Start   []byte  `json:"partitionKeyStart,omitempty"` // base64
	End     []byte  `json:"partitionKeyEnd,omitempty"`
	Buckets []int32 `json:"hashBuckets,omitempty"`
}

// column is the column of a field.
type column struct {
	columnMetadata
	kudu kudu.Column
	key  int // position in the key, from 1; 0 if not in the key
}

// columnOf returns Kudu's column for an Arrow field.
func columnOf(f arrow.Field) (c column, err error) {
	get := func(k string) string {
		v, _ := f.Metadata.GetValue(k)
		return v
	}
	k, err := kudu.ColumnOf(f)
	if err != nil {
		return c, err
	}
	c = column{kudu: k, columnMetadata: columnMetadata{Name: k.Name, Type: types[k.Type], Nullable: k.Nullable,
		Encoding:      named(encodings, get(cfile.MetaEncoding), "AUTO_ENCODING"),
		Compression:   named(compressions, get(cfile.MetaCompression), "DEFAULT_COMPRESSION"),
		BlockSize:     int(k.BlockSize),
		Comment:       k.Comment,
		AutoIncrement: k.AutoIncrement}}
	switch c.Type {
	case "VARCHAR":
		c.Attributes = &typeAttributes{Length: int(k.Length)}
	case "DECIMAL":
		c.Attributes = &typeAttributes{Precision: k.Precision, Scale: k.Scale}
	}
	if k.Array {
		c.Nested = &nestedType{arrayType{c.Type}}
		c.Type = "NESTED"
	}
	c.key, _ = strconv.Atoi(get(kudu.MetaKey))
	if f.Metadata.FindKey(kudu.MetaDefault) >= 0 {
		v, err := c.value(get(kudu.MetaDefault))
		if err != nil {
			return c, err
		}
		c.Default = &v
	}
	return c, nil
}

func named(names map[string]string, key, preset string) string {
	if s, ok := names[key]; ok {
		return s
	}
	return preset
}

// encodings and compressions are Kudu's names for the values in field metadata.
var encodings = map[string]string{"plain": "PLAIN_ENCODING", "prefix": "PREFIX_ENCODING", "rle": "RLE",
	"dict": "DICT_ENCODING", "bitshuffle": "BIT_SHUFFLE"}
var compressions = map[string]string{"none": "NO_COMPRESSION", "snappy": "SNAPPY", "lz4": "LZ4", "zlib": "ZLIB"}

// types are the names of types in Kudu's Java client.
var types = map[cfile.Type]string{cfile.Bool: "BOOL", cfile.Int8: "INT8", cfile.Int16: "INT16", cfile.Int32: "INT32",
	cfile.Int64: "INT64", cfile.Float: "FLOAT", cfile.Double: "DOUBLE", cfile.Date: "DATE", cfile.String: "STRING",
	cfile.Varchar: "VARCHAR", cfile.Binary: "BINARY", cfile.UnixtimeMicros: "UNIXTIME_MICROS",
	cfile.Decimal32: "DECIMAL", cfile.Decimal64: "DECIMAL", cfile.Decimal128: "DECIMAL"}

// value converts a value from its text in field metadata to the text that the restore job reads.
func (c *column) value(text string) (string, error) {
	v, err := c.kudu.Value(text)
	if err != nil {
		return "", err
	}
	if c.kudu.Array {
		return "", fault.Unsupportedf(fault.Span{}, "",
			"column %q: a backup's metadata has no defaults of arrays", c.Name)
	}
	switch c.Type {
	case "STRING", "VARCHAR":
		if !utf8.Valid(v) {
			return "", fault.Unsupportedf(fault.Span{}, "",
				"column %q: a backup's metadata is JSON, and the bytes %x are not UTF-8", c.Name, v)
		}
		return string(v), nil
	case "BINARY":
		return base64.StdEncoding.EncodeToString(v), nil
	case "UNIXTIME_MICROS":
		return strconv.FormatInt(int64(binary.LittleEndian.Uint64(v)), 10), nil
	case "DATE":
		days := int32(binary.LittleEndian.Uint32(v))
		return time.Unix(86400*int64(days), 0).UTC().Format(time.DateOnly), nil
	case "FLOAT", "DOUBLE":
		switch text { // as Scala parses them
		case "+Inf", "-Inf":
			return strings.TrimPrefix(text, "+") + "inity", nil
		}
	}
	return text, nil
}

// hashOf returns hash dimensions in the backup's form.
func hashOf(dims []kudu.HashMeta) (out []hashPartition) {
	for _, d := range dims {
		out = append(out, hashPartition{d.Columns, d.Buckets, int32(d.Seed)})
	}
	return out
}

// boundsOf returns a range in the backup's form.
func boundsOf(r kudu.RangeMeta, names []string, columns []column) (b bounds, err error) {
	values := func(texts []string) (out []columnValue, err error) {
		for i, text := range texts {
			k := -1
			if i < len(names) {
				k = slices.IndexFunc(columns, func(c column) bool { return c.Name == names[i] })
			}
			if k < 0 {
				return nil, fault.Invalidf("a partition bound has %s for columns %s", fault.Count(len(texts), "value"),
					strings.Join(names, ", "))
			}
			v, err := columns[k].value(text)
			if err != nil {
				return nil, fmt.Errorf("partition bound: %w", err)
			}
			out = append(out, columnValue{names[i], v})
		}
		return out, nil
	}
	if b.Lower, err = values(r.Lower); err != nil {
		return b, err
	}
	b.Upper, err = values(r.Upper)
	return b, err
}
