package meta

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"stoa/internal/sorted"
)

// Gap is a part of a table that no given tablet holds.
type Gap struct {
	Partition Partition
	Text      string
	// Sure is true if the partition schema implies such a tablet: another bucket of the same range is there, or the
	// schema has no ranges. Otherwise the table may have been created without it: Kudu allows uncovered ranges.
	Sure bool
}

// MaxGaps is the maximum number of gaps that are listed: a schema can declare billions of buckets.
const MaxGaps = 10_000

// Missing lists what the partition schema implies and none of the given partitions holds: buckets of ranges,
// and ranges between the given ones. more is the number of buckets beyond MaxGaps, which are not listed.
func (s *PartitionSchema) Missing(sc *Schema, given []Partition) (gaps []Gap, more int64) {
	have := bucketsOf(given)
	l := gapList{s: s, sc: sc}
	end, first, infinite := "", true, false // how far the ranges before reach
	for _, k := range s.ranges(have) {
		if len(s.Range) > 0 && (first && k.lower != "" || !first && !infinite && k.lower > end) {
			l.add(Partition{Start: []byte(end), End: []byte(k.lower)}, false)
		}
		if k.upper == "" {
			infinite = true
		} else {
			end = max(end, k.upper)
		}
		first = false
		l.addBuckets(k, have[k])
	}
	if len(s.Range) > 0 && !infinite {
		l.add(Partition{Start: []byte(end)}, false)
	}
	return l.gaps, l.more
}

// keyRange is a range of encoded range keys; an empty bound means unbounded.
type keyRange struct{ lower, upper string }

// bucketsOf are the buckets of partitions, as bucketKey encodes them, by range.
func bucketsOf(given []Partition) map[keyRange]map[string]bool {
	have := map[keyRange]map[string]bool{}
	for i := range given {
		p := &given[i]
		k := keyRange{string(p.Lower()), string(p.Upper())}
		if have[k] == nil {
			have[k] = map[string]bool{}
		}
		have[k][bucketKey(p.Buckets)] = true
	}
	return have
}

// ranges are those with tablets and those in Custom, in ascending order; if there are none, the unbounded range.
func (s *PartitionSchema) ranges(have map[keyRange]map[string]bool) []keyRange {
	ranges := make([]keyRange, 0, len(have))
	for k := range have {
		ranges = append(ranges, k)
	}
	for _, c := range s.Custom {
		if k := (keyRange{string(c.Lower), string(c.Upper)}); have[k] == nil {
			ranges = append(ranges, k)
		}
	}
	if len(ranges) == 0 {
		ranges = append(ranges, keyRange{})
	}
	sorted.By(ranges, func(a, b keyRange) int {
		return cmp.Or(cmp.Compare(a.lower, b.lower),
			cmp.Compare(a.upper, b.upper))
	})
	return ranges
}

// gapList collects gaps, and counts those beyond MaxGaps.
type gapList struct {
	s    *PartitionSchema
	sc   *Schema
	gaps []Gap
	more int64
}

func (l *gapList) add(p Partition, sure bool) {
	if len(l.gaps) == MaxGaps {
		l.more++
		return
	}
	text := ""
	if len(p.Buckets) > 0 {
		text = l.s.Text(l.sc, &p)
	} else {
		text = fmt.Sprintf("RANGE (%s) PARTITION %s", l.sc.names(l.s.Range), l.s.RangeText(l.sc, p.Start, p.End))
	}
	l.gaps = append(l.gaps, Gap{p, text, sure})
}

// addBuckets adds the buckets of a range that are not in have. It enumerates no more of them than can be listed, and
// counts the rest.
func (l *gapList) addBuckets(k keyRange, have map[string]bool) {
	hash := l.s.HashOf([]byte(k.lower))
	total := countBuckets(hash)
	sure := len(have) > 0 || len(l.s.Range) == 0
	look := min(total, int64(MaxGaps+len(have)+1))
	buckets := make([]int32, len(hash))
	for range look {
		if !have[bucketKey(buckets)] {
			l.add(l.s.BucketOf(buckets, k.lower, k.upper), sure)
		}
		for i := len(buckets) - 1; i >= 0; i-- {
			if buckets[i]++; buckets[i] < hash[i].Buckets {
				break
			}
			buckets[i] = 0
		}
	}
	l.more += total - look
}

// countBuckets is the product of the dimensions' buckets, but at most maxBuckets.
func countBuckets(hash []HashDimension) int64 {
	total := int64(1)
	for _, d := range hash {
		if total > maxBuckets/int64(d.Buckets) {
			return maxBuckets
		}
		total *= int64(d.Buckets)
	}
	return total
}

// maxBuckets bounds countBuckets, against overflow.
const maxBuckets = 1 << 40

// Tablets are the partitions in a gap: itself, or, if it is a range whose tablets are all missing, one for each of the
// buckets.
func (s *PartitionSchema) Tablets(sc *Schema, gap Partition) []Partition {
	if len(gap.Buckets) > 0 || len(s.HashOf(gap.Start)) == 0 {
		return []Partition{gap}
	}
	l := gapList{s: s, sc: sc}
	l.addBuckets(keyRange{string(gap.Start), string(gap.End)}, nil)
	out := make([]Partition, len(l.gaps))
	for i, g := range l.gaps {
		out[i] = g.Partition
	}
	return out
}

// Missing lists the parts of a table that none of its tablets holds; the tablets may be of several servers. The
// tablets in missing must exist somewhere; uncovered are ranges that the table may have been created without: only its
// master knows. more is the number of missing buckets that are not listed. A tablet that is not ready, so that its rows
// are elsewhere, is missing, unless its range has another tablet by now.
func Missing(tablets []*Tablet) (missing, uncovered []Gap, more int64) {
	var newest *Tablet
	var given []Partition
	var custom []RangeHash // of all tablets: each knows those that there were when it was created
	for _, t := range tablets {
		replaced := func(x *Tablet) bool { return x.State == TabletReady && x.Partition.overlaps(&t.Partition) }
		if t.State == TabletReady {
			given = append(given, t.Partition)
		} else if !slices.ContainsFunc(tablets, replaced) {
			given = append(given, t.Partition)
			missing = append(missing, Gap{t.Partition, t.Partitioning.Text(&t.Schema, &t.Partition), true})
		}
		if newest == nil || t.SchemaVersion > newest.SchemaVersion {
			newest = t
		}
		for _, c := range t.Partitioning.Custom {
			if !slices.ContainsFunc(custom, func(x RangeHash) bool { return bytes.Equal(x.Lower, c.Lower) }) {
				custom = append(custom, c)
			}
		}
	}
	if newest == nil || !newest.Partitioning.Stored {
		return missing, nil, 0
	}
	s := newest.Partitioning
	s.Custom = custom
	gaps, more := s.Missing(&newest.Schema, given)
	for _, g := range gaps {
		if g.Sure {
			missing = append(missing, g)
		} else {
			uncovered = append(uncovered, g)
		}
	}
	return missing, uncovered, more
}

// overlaps reports whether two partitions of a table have keys in common.
func (p *Partition) overlaps(q *Partition) bool {
	before := func(a, b []byte) bool { return len(b) == 0 || bytes.Compare(a, b) < 0 } // b is an end
	return before(p.Start, q.End) && before(q.Start, p.End)
}

func bucketKey(buckets []int32) string {
	b := make([]byte, 0, 4*len(buckets))
	for _, x := range buckets {
		b = binary.BigEndian.AppendUint32(b, uint32(x))
	}
	return string(b)
}

// BucketOf is the partition with the given buckets, one for each hash dimension, of a range with encoded bounds.
func (s *PartitionSchema) BucketOf(buckets []int32, lower, upper string) Partition {
	p := Partition{Buckets: slices.Clone(buckets)}
	p.Start = append([]byte(bucketKey(buckets)), lower...)
	end := slices.Clone(buckets)
	if upper == "" && len(end) > 0 {
		end[len(end)-1]++
	}
	p.End = append([]byte(bucketKey(end)), upper...)
	return p
}
