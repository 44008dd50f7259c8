package layout

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/region"
)

// Dialect is the definition that a file follows.
type Dialect uint8

// The dialects. They share the container; even their magics are the same.
const (
	Avro   Dialect = iota // Apache Avro's: lengths of arrays, parents
	Impala                // Impala's of 2012: definition levels after the values
	Wiki                  // Nong Li's wiki page: Dremel levels in front of the values
)

func (d Dialect) String() string { return [...]string{"avro", "impala", "wiki"}[d] }

const Magic = "Trv" // followed by the version byte

// Pair is a key and a value in metadata.
type Pair struct {
	Key    string
	Value  []byte
	At     fault.Span
	Stored string // the key in the file if it is a misspelling of Key; "" otherwise
}

// Header is the beginning of a file: everything but the columns' blocks.
type Header struct {
	Version int // fourth byte: 0, 1 or 2
	Dialect Dialect
	Rows    int64
	Meta    []Pair
	Columns []Column

	Size   int64 // bytes
	Sealed bool  // header and descriptors have checksums, which match
}

// Column is a column as the header declares it.
type Column struct {
	Name        string
	Type        Type
	Array       bool // Avro: every entry is a length and that many values
	Parent      int  // Avro: number of the column whose lengths count this column's entries; -1: rows do
	FirstValues bool // the descriptors of blocks hold the first value
	MaxDef      int  // Dremel levels (wiki, Impala)
	MaxRep      int
	Width       int    // wiki: values per row, if above 0
	Codec       string // as spelled in the file; "": none. Inherited from the file's metadata
	Checksum    string // also inherited
	Start       int64  // offset of the column
	Meta        []Pair

	At         fault.Span // its metadata
	Kind       Codec
	Summed     bool  // blocks have a CRC-32
	Problem    error // why its blocks cannot be read although the header is intact
	parentName string
}

// Get returns the value of a key, the last value if the key is repeated.
func Get(meta []Pair, key string) (value []byte, ok bool) {
	for _, p := range meta {
		if p.Key == key {
			value, ok = p.Value, true
		}
	}
	return value, ok
}

// parseMagic reads "Trv" and the version.
func parseMagic(c *Cursor) int {
	if !c.Need("magic", 4) {
		return -1
	}
	b := c.Bytes("magic", 4)
	if string(b[:3]) != Magic {
		c.Fail(c.Pos()-4, 4, "magic", "expected %[2]q, found %[1]q: not a Trevni file", b, Magic)
		return -1
	}
	if b[3] > 2 {
		c.FailClass(fault.Unsupported, c.Pos()-1, 1, "magic", "expected version 0, 1 or 2, found %d", b[3])
	}
	return int(b[3])
}

// ParseHeader reads the header at the beginning of c:
//
//	magic         "Trv", version byte
//	row-count     fixed64
//	column-count  fixed32
//	metadata      of the file
//	metadata      of each column
//	column-start  fixed64 for each column, from the beginning of the file
func ParseHeader(c *Cursor) (h Header) {
	h.Version = parseMagic(c)
	h.Rows = int64(c.u64("row-count"))
	if h.Rows < 0 {
		c.Fail(c.Pos()-8, 8, "row-count", "%d is negative", h.Rows)
	}
	n := c.Count("column-count")
	h.Meta, _ = parseMetadata(c, "file-metadata")
	if c.Err() == nil && n > (int64(c.Left())+c.More)/9 {
		c.Fail(16-4, 4, "column-count", "%d columns take at least %d bytes, the file has %d more", n, 9*n,
			int64(c.Left())+c.More)
	}
	for i := int64(0); i < n && c.Err() == nil; i++ {
		if c.Limits != nil && i >= c.Limits.Fields {
			c.FailClass(fault.Limit, c.Pos(), 0, "column-count",
				"%s, and at most %d are read (field limit)", fault.Count(n, "column"), c.Limits.Fields)
			break
		}
		c.Spend(perColumn)
		var col Column
		name := fmt.Sprintf("column-metadata[%d]", i)
		if col.Meta, col.At = parseMetadata(c, name); c.Err() == nil && !named(col.Meta) {
			c.Fail(c.Pos()-int(col.At.Len), int(col.At.Len), name+".name", "the column has no name")
		}
		h.Columns = append(h.Columns, col)
	}
	for i := range h.Columns {
		if c.Err() != nil {
			break
		}
		name := fmt.Sprintf("column-start[%d]", i)
		start := c.u64(name)
		if start > math.MaxInt64 {
			c.Fail(c.Pos()-8, 8, name, "expected an offset, found %d", start)
		}
		h.Columns[i].Start = int64(start)
	}
	h.Size = int64(c.Pos())
	return h
}

// Estimated memory of a column and of a metadata pair, in bytes.
const (
	perColumn = 1 << 10
	perPair   = 128
)

// named reports whether one of the keys is a dialect's key for the column name. Columns without a name are not kept:
// there could be millions of them.
func named(meta []Pair) bool {
	for _, p := range meta {
		if word, _ := Wiki.Normal(p.Key); word == "name" {
			return true
		}
	}
	return false
}

// parseMetadata reads
//
//	meta-count  zig-zag varint; Avro's reader treats a negative count as zero
//	pairs       key and value, each a zig-zag varint length and that many bytes
//
// Unlike an Avro map, it has no terminator.
func parseMetadata(c *Cursor, name string) (pairs []Pair, at fault.Span) {
	if c.Err() != nil {
		return nil, fault.Span{}
	}
	start, size := c.Pos(), metadataLen(c.Rest())
	c.Node(region.Struct, start, size, name, "")
	d := &Cursor{Cursor: c.Section(name, size)}
	d.More, d.Limits = c.More+int64(c.Left()), c.Limits
	n := d.long("meta-count")
	for i := int64(0); i < n && d.Err() == nil; i++ {
		from := d.Pos()
		key := string(d.text(fmt.Sprintf("pair[%d].key", i)))
		value := d.text(fmt.Sprintf("pair[%d].value", i))
		if d.Spend(perPair + int64(len(key)+len(value))); d.Err() == nil {
			pairs = append(pairs, Pair{Key: key, Value: append([]byte(nil), value...),
				At: d.SpanOf(from, d.Pos()-from)})
		}
	}
	c.Join(d.Cursor)
	c.Short = d.Short
	return pairs, c.SpanOf(start, size)
}

// metadataLen returns the length of the metadata at the beginning of b: a node is emitted before its parts.
func metadataLen(b []byte) int {
	pos := 0
	step := func() (int64, bool) {
		v, n := Varint(b[pos:])
		if n <= 0 {
			return 0, false
		}
		pos += n
		return v, true
	}
	n, ok := step()
	for i := int64(0); ok && i < 2*n; i++ {
		var k int64
		if k, ok = step(); ok && k >= 0 && k <= int64(len(b)-pos) {
			pos += int(k)
		} else {
			ok = false
		}
	}
	if !ok {
		return len(b) // the parser will find the error
	}
	return pos
}

// Resolve determines the dialect and parses the columns' metadata. path and at are those of the whole header.
func (h *Header) Resolve(at fault.Span) error {
	fixKeys(h.Meta)
	for i := range h.Columns {
		fixKeys(h.Columns[i].Meta)
	}
	var err error
	if h.Dialect, err = h.dialect(at); err != nil {
		return err
	}
	byName := map[string]int{}
	for i := range h.Columns {
		c := &h.Columns[i]
		if err := c.parse(h, fmt.Sprintf("column-metadata[%d]", i)); err != nil {
			return err
		}
		c.Parent = -1
		if h.Dialect == Avro && c.parentName != "" {
			p, ok := byName[c.parentName]
			if !ok {
				return fault.Corruptf(c.At, fmt.Sprintf("column-metadata[%d].parent", i),
					"no column before is named %q", c.parentName)
			}
			if !h.Columns[p].Array {
				return fault.Corruptf(c.At, fmt.Sprintf("column-metadata[%d].parent", i), "column %q is not an array",
					c.parentName)
			}
			c.Parent = p
		}
		byName[c.Name] = i
	}
	return nil
}

// dialect decides by the version and by the spelling of the columns' keys, see the package comment of trevni.
func (h *Header) dialect(at fault.Span) (Dialect, error) {
	if h.Version == 0 || h.Version == 2 || len(h.Columns) == 0 {
		return Avro, nil
	}
	prefixed := false
	for i := range h.Columns {
		for _, p := range h.Columns[i].Meta {
			switch p.Key {
			case "trevni.definition", "trevni.repetition":
				return Impala, nil
			case "trevni.name", "trevni.type":
				prefixed = true
			}
		}
	}
	if prefixed {
		return Avro, nil
	}
	for i := range h.Columns {
		if _, ok := h.Columns[i].find(Wiki, "type"); ok {
			return Wiki, nil
		}
	}
	return 0, fault.Corruptf(at, "column-metadata", "no column has a name and a type that any dialect of Trevni knows")
}

// synonyms maps the wiki's words, in lower case and without blanks, to those of Avro and Impala.
var synonyms = map[string]string{
	"hasinitialvalue": "values", "maxrepetition": "repetition", "maxdefinition": "definition", "arraywidth": "width",
	"compressioncodec": "codec", "checksumalgorithm": "checksum", "defaultcompressioncodec": "codec",
	"defaultchecksumalgorithm": "checksum",
}

// Normal returns a key without its prefix, in Avro's spelling, and whether the dialect defines it; other keys are
// returned unchanged.
func (d Dialect) Normal(key string) (string, bool) {
	short, prefixed := strings.CutPrefix(key, "trevni.")
	if d != Wiki {
		return short, prefixed
	}
	short = strings.ReplaceAll(strings.ToLower(short), " ", "")
	if s, ok := synonyms[short]; ok {
		short = s
	}
	return short, true
}

// find looks for one of the keys that the format defines.
func find(d Dialect, meta []Pair, word string) (value string, ok bool) {
	for _, p := range meta {
		if w, known := d.Normal(p.Key); known && w == word {
			value, ok = string(p.Value), true
		}
	}
	return value, ok
}

func (c *Column) find(d Dialect, word string) (string, bool) { return find(d, c.Meta, word) }

// flag returns a boolean property. In Avro's and Impala's files a flag is true if it is present, whatever its value.
func (c *Column) flag(d Dialect, word string) bool {
	v, ok := c.find(d, word)
	if d == Wiki && ok {
		return v != "false" && v != "0"
	}
	return ok
}

// parse sets c from its metadata and the file's.
func (c *Column) parse(h *Header, path string) error {
	d := h.Dialect
	var ok bool
	if c.Name, ok = c.find(d, "name"); !ok {
		return fault.Corruptf(c.At, path+".name", "the column has no name")
	}
	typ, ok := c.find(d, "type")
	if !ok {
		return fault.Corruptf(c.At, path+".type", "column %q has no type", c.Name)
	}
	if c.Type, ok = TypeByName(typ); !ok || c.Type > Bytes && d != Impala {
		return fault.Unsupportedf(c.At, path+".type", "column %q has type %q", c.Name, typ)
	}
	c.FirstValues = c.flag(d, "values")
	if d == Avro {
		c.Array = c.flag(d, "array")
		c.parentName, _ = c.find(d, "parent")
	} else {
		for word, to := range map[string]*int{"definition": &c.MaxDef, "repetition": &c.MaxRep, "width": &c.Width} {
			if err := c.number(d, word, to, path); err != nil {
				return err
			}
		}
		c.parentName, _ = c.find(d, "parent")
		if c.MaxRep > c.MaxDef || c.MaxDef > 255 || c.Width > 0 && c.MaxDef > 0 {
			return fault.Corruptf(c.At, path,
				"column %q has definition %d, repetition %d and width %d, which do not go together", c.Name,
				c.MaxDef, c.MaxRep, c.Width)
		}
	}
	c.inherit(h, "codec", &c.Codec)
	c.inherit(h, "checksum", &c.Checksum)
	c.resolve()
	return nil
}

func (c *Column) inherit(h *Header, word string, to *string) {
	var ok bool
	if *to, ok = c.find(h.Dialect, word); !ok {
		*to, _ = find(h.Dialect, h.Meta, word)
	}
}

// number parses a decimal number, without the leniency of C's atoi.
func (c *Column) number(d Dialect, word string, to *int, path string) error {
	v, ok := c.find(d, word)
	if !ok {
		return nil
	}
	var n int
	for _, r := range []byte(v) {
		if r < '0' || r > '9' || n > 1<<24 {
			return fault.Corruptf(c.At, path+"."+word, "expected a number that column %q can have, found %q", c.Name, v)
		}
		n = 10*n + int(r-'0')
	}
	*to = n
	return nil
}

// resolve looks up codec and checksum. An unknown codec or checksum affects this column only.
func (c *Column) resolve() {
	var ok bool
	if c.Kind, ok = CodecByName(c.Codec); !ok {
		c.Problem = fault.Unsupportedf(c.At, "codec", "column %q is compressed with %q", c.Name, c.Codec)
	}
	switch strings.ToLower(c.Checksum) {
	case "", "null", "none":
	case "crc32", "crc-32":
		c.Summed = true
	default:
		c.Problem = fault.Unsupportedf(c.At, "checksum", "column %q has checksums of kind %q", c.Name, c.Checksum)
	}
}

// Metadata of our writer, which other readers ignore.
const (
	SchemaKey = "stoa.schema"      // of the file: the Arrow schema that was written, see storedField
	SealKey   = "stoa.header"      // of the file: CRC-32 of the header with zeros here, as eight hexadecimal digits
	PartKey   = "stoa.part"        // of the file, see parts.go
	DescKey   = "stoa.descriptors" // of a column: CRC-32 of its count and descriptors
	SortedKey = "stoa.sorted"      // of a column: values never decrease
)

// longKeys are the keys that are long enough to be recognized with two wrong bytes.
var longKeys = []string{"trevni.codec", "trevni.checksum", "trevni.name", "trevni.type", "trevni.values",
	"trevni.array", "trevni.parent", "trevni.repetition", "trevni.definition",
	"HasInitialValue", "MaxRepetition", "MaxDefinition", "ArrayWidth", "CompressionCodec", "ChecksumAlgorithm",
	"avro.schema", SchemaKey, SealKey, DescKey, SortedKey, PartKey}

// NearestKey returns the known key of the same length that differs from key in the fewest bytes: at most two, or a
// third of them if it begins with "trevni."; "" if key is known, or if there is no such key or more than one.
func NearestKey(key string) string {
	if slices.Contains(longKeys, key) {
		return ""
	}
	if word, _ := Wiki.Normal(key); slices.Contains([]string{"values", "repetition", "definition", "width", "codec",
		"checksum"}, word) { // an accepted spelling
		return ""
	}
	nearest, least := "", len(key)
	for _, k := range longKeys {
		if len(k) != len(key) {
			continue
		}
		differ, most := 0, 2
		if strings.HasPrefix(k, "trevni.") {
			most = len(k) / 3
		}
		for i := range len(k) {
			if k[i] != key[i] {
				differ++
			}
		}
		switch {
		case differ > most:
		case differ < least:
			nearest, least = k, differ
		case differ == least:
			nearest = ""
		}
	}
	return nearest
}

// fixKeys replaces each misspelled key by its NearestKey, unless that key is also present.
func fixKeys(meta []Pair) {
	known := map[string]bool{}
	for _, p := range meta {
		known[p.Key] = true
	}
	for i := range meta {
		if word := NearestKey(meta[i].Key); word != "" && !known[word] {
			meta[i].Stored, meta[i].Key, known[word] = meta[i].Key, word, true
		}
	}
}
