package change

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/status"
)

// partitionMatch are values of some partition columns of a table.
type partitionMatch struct {
	columns []*schema.Column
	values  []schema.Constant // Null: the partition of null
	texts   []string          // as in directory names, but not escaped
}

// matchPartition finds the partition columns for values. A column that is not a partition column, or a value that is
// not of its type, is Invalid.
func matchPartition(t *layout.TableSchema, values format.PartitionValues) (*partitionMatch, error) {
	if t.Partition == nil || t.Partition.Kind != layout.NativeHive {
		return nil, fault.Invalidf("the table has no partitions")
	}
	if len(values) == 0 {
		return nil, fault.Invalidf("which partition is missing: expected values of some partition columns")
	}
	m := &partitionMatch{}
	known := 0
	for i := range t.Partition.Columns {
		c := &schema.Column{ColumnSchema: &t.Partition.Columns[i]}
		for name, text := range values {
			if !strings.EqualFold(name, c.Name) {
				continue
			}
			known++
			v, s := schema.Constant{Null: true}, schema.HiveNull
			if text != nil {
				var err error // 01 is the partition 1
				if v, err = page.ParseConstant(c, *text); err != nil {
					return nil, fault.Invalidf("partition column %s: %v", c.Name, err)
				}
				if s = schema.PartitionText(c.ColumnSchema, v); s == schema.HiveNull {
					return nil, fault.Invalidf("partition column %s: %q would be read as null, whose partition is %s "+
						"without a value", c.Name, *text, c.Name)
				}
			}
			m.columns, m.values, m.texts = append(m.columns, c), append(m.values, v), append(m.texts, s)
		}
	}
	if known < len(values) {
		for name := range values {
			if !slices.ContainsFunc(m.columns, func(c *schema.Column) bool { return strings.EqualFold(c.Name, name) }) {
				return nil, fault.Invalidf("%s is not a partition column of the table", name)
			}
		}
		return nil, fault.Invalidf("a partition column is named twice")
	}
	return m, nil
}

func (m *partitionMatch) String() string {
	var s []string
	for i, c := range m.columns {
		s = append(s, c.Name+"="+m.texts[i])
	}
	return strings.Join(s, "/")
}

// refused says why a row of another partition, with the values of dirs, is not one of m.
func (m *partitionMatch) refused(values []string) string {
	return fmt.Sprintf("expected a row of the partition %s, found one of %s", m, strings.Join(values, "/"))
}

// dirs returns the directory names of the single partition that m selects, see schema.Escape.
func (m *partitionMatch) dirs() (out []string) {
	for i, c := range m.columns {
		out = append(out, schema.Escape(c.Name)+"="+schema.Escape(m.texts[i]))
	}
	return out
}

// has reports whether a partition, given as NAME=VALUE for each column as in directory names, has the values.
func (m *partitionMatch) has(partition []string) bool {
	for i, c := range m.columns {
		ok := false
		for _, p := range partition {
			name, value, _ := strings.Cut(p, "=")
			if strings.EqualFold(schema.Unescape(name), c.Name) {
				ok = m.same(i, value)
			}
		}
		if !ok {
			return false
		}
	}
	return true
}

// same reports whether the value in a directory name equals the value for column i. 1 and 01, or two texts for the same
// time, are equal.
func (m *partitionMatch) same(i int, value string) bool {
	if value == schema.HiveNull {
		return m.values[i].Null
	}
	value = schema.Unescape(value)
	if m.values[i].Null || value == m.texts[i] {
		return !m.values[i].Null
	}
	v, err := page.ParseConstant(m.columns[i], value)
	return err == nil && schema.PartitionText(m.columns[i].ColumnSchema, v) == m.texts[i]
}

// dropPlaces drops the partitions for which drop returns true from all valid segments except one. Like CarbonData, it
// gives each segment a new segment file with the time stamp, in which the directories of these partitions are marked as
// deleted. A segment of which nothing is left is marked as deleted itself. With dry no file is written.
func dropPlaces(dir string, s status.StatusFile, except string, stamp int64, dry bool,
	drop func(partition []string) bool) (out format.DroppedPartitions, err error) {
	gone := map[string]bool{}
	for _, x := range s {
		e := status.StatusEntry(x)
		if !e.Counts() || e.Text("loadName") == except {
			continue
		}
		name := e.Text("segmentFile")
		if name == "" {
			return out, fault.Unsupportedf(fault.Span{Object: status.StatusPath(dir)}, "",
				"segment %s has no segment file, so that its partitions are not known", e.Text("loadName"))
		}
		seg, places, err := readSegmentFile(dir, name)
		if err != nil {
			return out, err
		}
		changed, left := false, false
		for _, k := range layout.SortedKeys(places) {
			f, _ := places[k].(map[string]any)
			if f == nil || f["status"] != status.StatusSuccess {
				continue
			}
			if of := textsOf(f["partitions"]); drop(of) {
				f["status"], changed = status.StatusDeleted, true
				gone[strings.Join(of, "/")] = true
			} else {
				left = true
			}
		}
		if !changed {
			continue
		}
		out.Segments = append(out.Segments, e.Text("loadName"))
		switch id, _, _ := strings.Cut(name, "_"); {
		case !left:
			e["loadStatus"], e["modificationOrDeletionTimestamp"] = status.StatusDeleted, status.FormatMillis(stamp)
		case !dry:
			b, err := json.Marshal(seg)
			if err == nil {
				name = fmt.Sprintf("%s_%d.segment", id, stamp)
				err = status.ReplaceFile(filepath.Join(dir, "Metadata", "segments", name), b)
			}
			if err != nil {
				return out, err
			}
			e["segmentFile"] = name
		}
	}
	out.Partitions = slices.Sorted(maps.Keys(gone))
	return out, nil
}

// readSegmentFile reads a segment file. It returns all its members, and its locations.
func readSegmentFile(dir, name string) (seg, places map[string]any, err error) {
	full := filepath.Join(dir, "Metadata", "segments", name)
	b, err := os.ReadFile(full)
	if err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(b, &seg); err != nil {
		return nil, nil, fault.Corruptf(fault.Span{Object: full, Len: int64(len(b))}, "", "%v", err)
	}
	places, _ = seg["locationMap"].(map[string]any)
	return seg, places, nil
}

func textsOf(v any) (out []string) {
	list, _ := v.([]any)
	for _, x := range list {
		s, _ := x.(string)
		out = append(out, s)
	}
	return out
}
