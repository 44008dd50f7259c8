package meta

import (
	"fmt"
	"strings"

	"stoa/format/cfile"
)

// names are the names of columns, separated by commas.
func (sc *Schema) names(ids []int32) string {
	out := make([]string, len(ids))
	for i, id := range ids {
		if out[i] = "<unknown-column>"; sc.Find(id) >= 0 {
			out[i] = sc.Columns[sc.Find(id)].Name
		}
	}
	return strings.Join(out, ", ")
}

// Text writes the partition as Kudu's tools do: HASH (id) PARTITION 1, RANGE (day) PARTITION 0 <= VALUES < 100.
func (s *PartitionSchema) Text(sc *Schema, p *Partition) string {
	hash := s.HashOf(p.Lower())
	if len(p.Buckets) != len(hash) {
		return fmt.Sprintf("<hash-partition-error: %d vs %d expected buckets>", len(p.Buckets), len(hash))
	}
	var parts []string
	for i, d := range hash {
		parts = append(parts, fmt.Sprintf("HASH (%s) PARTITION %d", sc.names(d.Columns), p.Buckets[i]))
	}
	if len(s.Range) > 0 {
		parts = append(parts, fmt.Sprintf("RANGE (%s) PARTITION %s", sc.names(s.Range),
			s.RangeText(sc, p.Lower(), p.Upper())))
	}
	return strings.Join(parts, ", ")
}

// SchemaText writes how the table is divided: HASH (id) PARTITIONS 2, RANGE (day).
func (s *PartitionSchema) SchemaText(sc *Schema) string {
	var parts []string
	for _, d := range s.Hash {
		t := fmt.Sprintf("HASH (%s) PARTITIONS %d", sc.names(d.Columns), d.Buckets)
		if d.Seed != 0 {
			t += fmt.Sprintf(" SEED %d", d.Seed)
		}
		parts = append(parts, t)
	}
	if len(s.Range) > 0 {
		parts = append(parts, "RANGE ("+sc.names(s.Range)+")")
	}
	return strings.Join(parts, ", ")
}

// RangeText writes a range: "0 <= VALUES < 100", "UNBOUNDED".
func (s *PartitionSchema) RangeText(sc *Schema, lower, upper []byte) string {
	lo, err := s.rangeKeyText(sc, lower)
	if err != nil {
		return fmt.Sprintf("<range-key-decode-error: %v>", err)
	}
	up, err := s.rangeKeyText(sc, upper)
	if err != nil {
		return fmt.Sprintf("<range-key-decode-error: %v>", err)
	}
	switch {
	case len(lower) == 0 && len(upper) == 0:
		return "UNBOUNDED"
	case len(lower) == 0:
		return "VALUES < " + up
	case len(upper) == 0:
		return lo + " <= VALUES"
	}
	return lo + " <= VALUES < " + up
}

// rangeValues decodes an encoded range key into the values of the range columns. Keys of bounds may end early: the
// columns that are missing have their minimum.
func (s *PartitionSchema) rangeValues(sc *Schema, key []byte) (values [][]byte, rest []byte, err error) {
	rest = key
	for k, id := range s.Range {
		i := sc.Find(id)
		if i < 0 {
			return nil, nil, fmt.Errorf("there is no column %d", id)
		}
		t := sc.Columns[i].Type
		v := minValue(t)
		if len(rest) > 0 {
			n, types := t.Width(), []cfile.Type{t}
			if t.IsBinary() {
				if n = len(rest); k < len(s.Range)-1 {
					n, types = separated(rest), append(types, cfile.String) // the first of two columns has a separator
				}
			}
			n = min(n, len(rest))
			decoded, err := cfile.DecodeKey(rest[:n], types)
			if err != nil {
				return nil, nil, err
			}
			v, rest = decoded[0], rest[n:]
		}
		values = append(values, v)
	}
	return values, rest, nil
}

// rangeKeyText writes an encoded range key as Kudu's tools do.
func (s *PartitionSchema) rangeKeyText(sc *Schema, key []byte) (string, error) {
	values, rest, err := s.rangeValues(sc, key)
	if err != nil {
		return "", err
	}
	if len(rest) > 0 {
		return "", fmt.Errorf("%d bytes are left over", len(rest))
	}
	var parts []string
	for k, v := range values {
		parts = append(parts, ValueText(sc.Columns[sc.Find(s.Range[k])].Type, v))
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return "(" + strings.Join(parts, ", ") + ")", nil
}

// separated is the length of a string that is not the last column of a key, with the separator 00 00 after it.
func separated(b []byte) int {
	for i := 0; i+1 < len(b); i++ {
		if b[i] == 0 {
			if b[i+1] == 0 {
				return i + 2
			}
			i++
		}
	}
	return len(b)
}

// RangeTexts are the values of an encoded range key as PlainText writes them; none for an empty key, which is
// unbounded.
func (s *PartitionSchema) RangeTexts(sc *Schema, key []byte) (out []string, err error) {
	if len(key) == 0 {
		return nil, nil
	}
	values, _, err := s.rangeValues(sc, key)
	if err != nil {
		return nil, err
	}
	for k, v := range values {
		out = append(out, sc.Columns[sc.Find(s.Range[k])].PlainText(v))
	}
	return out, nil
}
