package kudubackup

import (
	"encoding/base64"
	"encoding/hex"
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

// tableMetadata is a TableMetadataPB, in the names of protobuf's JSON. Numbers of 64 bits are strings there.
type tableMetadata struct {
	Version    int                          `json:"version"`
	FromMs     string                       `json:"fromMs"` // 0: a full backup
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

// bounds is a RangeBoundsMetadataPB: none is unbounded.
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

// column is what a field becomes.
type column struct {
	columnMetadata
	id  int32 // -1: none is known
	key int   // place in the key, from 1; 0: none
}

// columnOf makes Kudu's column of an Arrow field.
func columnOf(f arrow.Field) (c column, err error) {
	get := func(k string) string {
		v, _ := f.Metadata.GetValue(k)
		return v
	}
	c = column{columnMetadata: columnMetadata{Name: f.Name, Nullable: f.Nullable, Comment: get(kudu.MetaComment),
		AutoIncrement: get(kudu.MetaAutoIncrement) == "true"}, id: -1}
	if c.Type, c.Attributes, err = typeOf(f); err != nil {
		return c, err
	}
	c.Encoding = named(encodings, get(cfile.MetaEncoding), "AUTO_ENCODING")
	c.Compression = named(compressions, get(cfile.MetaCompression), "DEFAULT_COMPRESSION")
	c.BlockSize, _ = strconv.Atoi(get(cfile.MetaBlockSize))
	if n, err := strconv.Atoi(get(kudu.MetaColumnID)); err == nil {
		c.id = int32(n)
	}
	c.key, _ = strconv.Atoi(get(kudu.MetaKey))
	if f.Metadata.FindKey(kudu.MetaDefault) >= 0 {
		v, err := c.value(get(kudu.MetaDefault))
		if err != nil {
			return c, fault.Invalidf("column %q: its default: %v", f.Name, err)
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

// encodings and compressions are Kudu's names of what field metadata has in short.
var encodings = map[string]string{"plain": "PLAIN_ENCODING", "prefix": "PREFIX_ENCODING", "rle": "RLE",
	"dict": "DICT_ENCODING", "bitshuffle": "BIT_SHUFFLE"}
var compressions = map[string]string{"none": "NO_COMPRESSION", "snappy": "SNAPPY", "lz4": "LZ4", "zlib": "ZLIB"}

// typeOf is Kudu's type of a field.
func typeOf(f arrow.Field) (string, *typeAttributes, error) {
	stored, _ := f.Metadata.GetValue(cfile.MetaType)
	switch t := f.Type.(type) {
	case *arrow.BooleanType:
		return "BOOL", nil, nil
	case *arrow.Int8Type:
		return "INT8", nil, nil
	case *arrow.Int16Type:
		return "INT16", nil, nil
	case *arrow.Int32Type:
		return "INT32", nil, nil
	case *arrow.Int64Type:
		return "INT64", nil, nil
	case *arrow.Float32Type:
		return "FLOAT", nil, nil
	case *arrow.Float64Type:
		return "DOUBLE", nil, nil
	case *arrow.Date32Type:
		return "DATE", nil, nil
	case *arrow.StringType:
		if length, _ := f.Metadata.GetValue(cfile.MetaLength); stored == cfile.Varchar.String() {
			n, err := strconv.Atoi(length)
			if err != nil || n < 1 || n > 65535 {
				return "", nil, fault.Invalidf("column %q is a varchar of length %q: 1 to 65535 is wanted", f.Name,
					length)
			}
			return "VARCHAR", &typeAttributes{Length: n}, nil
		}
		return "STRING", nil, nil
	case *arrow.BinaryType:
		return "BINARY", nil, nil
	case *arrow.TimestampType:
		if t.Unit == arrow.Microsecond && t.TimeZone != "" {
			return "UNIXTIME_MICROS", nil, nil
		}
		return "", nil, fault.New(fault.Unsupported, fault.Span{}, "",
			"column %q is of %s: Kudu's only time is in microseconds, of UTC", f.Name, t)
	case *arrow.Decimal128Type:
		return "DECIMAL", &typeAttributes{Precision: t.Precision, Scale: t.Scale}, nil
	}
	return "", nil, fault.New(fault.Unsupported, fault.Span{}, "", "column %q is of %s, for which Kudu has no type",
		f.Name, f.Type)
}

// value turns the text of a value, as field metadata has it, into the one that the restore job reads.
func (c *column) value(text string) (string, error) {
	switch c.Type {
	case "STRING", "VARCHAR":
		digits, ok := strings.CutPrefix(text, kudu.HexText)
		if !ok {
			return text, nil
		}
		b, err := hex.DecodeString(digits)
		if err == nil && !utf8.Valid(b) {
			err = fault.Unsupportedf(fault.Span{}, "", "a backup's metadata is JSON, and the bytes %s are not UTF-8",
				digits)
		}
		return string(b), err
	case "BINARY":
		b, err := hex.DecodeString(text)
		return base64.StdEncoding.EncodeToString(b), err
	case "UNIXTIME_MICROS":
		t, err := time.Parse("2006-01-02T15:04:05.000000Z", padYear(text))
		return strconv.FormatInt(t.UnixMicro(), 10), err
	case "DATE":
		return padYear(text), nil
	case "FLOAT", "DOUBLE":
		switch text { // as Scala reads them
		case "+Inf", "-Inf":
			return strings.TrimPrefix(text, "+") + "inity", nil
		}
	}
	return text, nil
}

// padYear makes the year of a date four digits wide.
func padYear(s string) string {
	if i := strings.IndexByte(s, '-'); i > 0 && i < 4 {
		return strings.Repeat("0", 4-i) + s
	}
	return s
}

// hashOf is hash dimensions in the backup's words.
func hashOf(dims []kudu.HashMeta) (out []hashPartition) {
	for _, d := range dims {
		out = append(out, hashPartition{d.Columns, d.Buckets, int32(d.Seed)})
	}
	return out
}

// boundsOf is a range in the backup's words.
func boundsOf(r kudu.RangeMeta, names []string, columns []column) (b bounds, err error) {
	side := func(texts []string) (out []columnValue, err error) {
		for i, text := range texts {
			k := -1
			if i < len(names) {
				k = slices.IndexFunc(columns, func(c column) bool { return c.Name == names[i] })
			}
			if k < 0 {
				return nil, fault.Invalidf("a bound of a partition has %d values for columns %s", len(texts),
					strings.Join(names, ", "))
			}
			v, err := columns[k].value(text)
			if err != nil {
				return nil, fmt.Errorf("a bound of column %q: %w", names[i], err)
			}
			out = append(out, columnValue{names[i], v})
		}
		return out, nil
	}
	if b.Lower, err = side(r.Lower); err != nil {
		return b, err
	}
	b.Upper, err = side(r.Upper)
	return b, err
}
