package change

import (
	"context"
	"os"
	"path/filepath"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/status"
)

// DropPartition removes the partitions of the table in dir that have the values in of.
func DropPartition(ctx context.Context, dir string, of format.PartitionValues, dry bool) (
	out format.DroppedPartitions, err error) {
	t, err := ReadTableSchema(dir)
	if err != nil {
		return out, err
	}
	m, err := matchPartition(t, of)
	if err != nil {
		return out, err
	}
	stamp := status.NowMillis()
	drop := func(s *status.StatusFile) error {
		out, err = dropPlaces(dir, *s, "", max(stamp, lastStamp(*s)+1), dry, m.has)
		if err == nil && len(out.Partitions) == 0 {
			out.Partitions, err = dropEmpty(dir, m, dry)
		}
		return err
	}
	if dry {
		s, err := readStatus(dir)
		if err == nil {
			err = drop(&s)
		}
		return out, err
	}
	return out, changeStatus(ctx, dir, drop)
}

// dropEmpty removes the directory of a partition without segments, which AddPartition made, with the directories above
// it that it leaves empty. A directory with files is none. It returns the partition.
func dropEmpty(dir string, m *partitionMatch, dry bool) ([]string, error) {
	names := m.dirs()
	full := filepath.Join(append([]string{dir}, names...)...)
	list, err := os.ReadDir(full)
	if err != nil || len(list) > 0 {
		return nil, fault.Invalidf("%s has no partition %s", dir, m)
	}
	if dry {
		return []string{m.String()}, nil
	}
	if err := os.Remove(full); err != nil {
		return nil, err
	}
	for range names[1:] {
		full = filepath.Dir(full)
		if os.Remove(full) != nil { // others are in it
			break
		}
	}
	return []string{m.String()}, nil
}

// AddPartition creates the directory of an empty partition or, if location is set, adds the directory there as a
// segment.
func AddPartition(ctx context.Context, dir string, of format.PartitionValues, location string, dry bool) (string,
	error) {
	t, err := ReadTableSchema(dir)
	if err != nil {
		return "", err
	}
	m, err := matchPartition(t, of)
	if err != nil {
		return "", err
	}
	if len(m.columns) < len(t.Partition.Columns) {
		return "", fault.Invalidf("expected a value of each of the %d partition columns, found %s",
			len(t.Partition.Columns), m)
	}
	for i, c := range m.columns {
		if c.Type == layout.TypeDecimal && !m.values[i].D.FitsInPrecision(c.Precision) {
			return "", fault.Invalidf("partition column %s: %s has more than %d digits", c.Name, m.texts[i],
				c.Precision)
		}
	}
	for _, name := range m.dirs() {
		if len(name) > maxName {
			return "", fault.Invalidf("a partition is a directory, and this one's name would have %d bytes, where "+
				"file systems take %d", len(name), maxName)
		}
	}
	if location != "" {
		return addPlace(ctx, dir, format.NewSegment{Path: location}, m.dirs(), dry)
	}
	full := filepath.Join(append([]string{dir}, m.dirs()...)...)
	if exists(full) {
		return "", fault.Invalidf("%s has the partition %s already", dir, m)
	}
	if dry {
		return "", nil
	}
	return "", os.MkdirAll(full, 0o777)
}

// Truncate removes all segments from the table in dir, and returns their names; Clean removes their files.
func Truncate(ctx context.Context, dir string, dry bool) (names []string, err error) {
	all := func(s *status.StatusFile) error {
		for _, x := range *s {
			if e := status.StatusEntry(x); e.Counts() {
				names = append(names, e.Text("loadName"))
			}
		}
		return markDeleted(dir, names)(s)
	}
	if dry {
		s, err := readStatus(dir)
		if err == nil {
			err = all(&s)
		}
		return names, err
	}
	return names, changeStatus(ctx, dir, all)
}
