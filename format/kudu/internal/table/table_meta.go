package table

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/store"
)

// MetaTable is the key of the schema metadata with a table's name, id and partitioning: a TableMeta as JSON.
const MetaTable = "stoa.kudu.table"

// TableMeta is the metadata of a table in an Arrow schema. Values are texts as in field metadata (see MetaDefault).
type TableMeta struct {
	ID       string     `json:"id,omitempty"`
	Name     string     `json:"name"`
	Replicas int        `json:"replicas,omitempty"` // voters of a tablet; 0: unknown
	Hash     []HashMeta `json:"hash,omitempty"`
	Range    []string   `json:"range,omitempty"` // columns
	// Ranges are the ranges, of the tablets that were read, that have the table's hash dimensions.
	Ranges  []RangeMeta  `json:"ranges,omitempty"`
	Custom  []RangeMeta  `json:"custom,omitempty"` // ranges with hash dimensions of their own
	Tablets []TabletMeta `json:"tablets,omitempty"`
}

// HashMeta is a hash dimension.
type HashMeta struct {
	Columns []string `json:"columns"`
	Buckets int32    `json:"buckets"`
	Seed    uint32   `json:"seed"`
}

// RangeMeta is a range of the range columns: lower inclusive, upper exclusive, a value for each column; empty:
// unbounded.
type RangeMeta struct {
	Lower []string   `json:"lower,omitempty"`
	Upper []string   `json:"upper,omitempty"`
	Hash  []HashMeta `json:"hash,omitempty"`
}

// TabletMeta is a tablet's partition: encoded partition keys, and buckets.
type TabletMeta struct {
	ID      string  `json:"id"`
	Start   []byte  `json:"start"`
	End     []byte  `json:"end"`
	Buckets []int32 `json:"buckets,omitempty"`
}

// withTableMeta adds the MetaTable of tablets to a schema. Ranges that cannot be decoded are left out.
func withTableMeta(sc *arrow.Schema, s *meta.Schema, tablets []*Tablet) *arrow.Schema {
	if len(tablets) == 0 {
		return sc
	}
	b, err := json.Marshal(tableMeta(s, tablets))
	if err != nil {
		return sc
	}
	old := sc.Metadata()
	m := arrow.NewMetadata(append(slices.Clone(old.Keys()), MetaTable), append(slices.Clone(old.Values()), string(b)))
	return arrow.NewSchema(sc.Fields(), &m)
}

func tableMeta(s *meta.Schema, tablets []*Tablet) TableMeta {
	first := Newest(tablets)
	p := &first.Partitioning
	m := TableMeta{ID: first.TableID, Name: first.Table, Hash: hashMeta(s, p.Hash)}
	if c := first.Consensus; c != nil {
		for _, peer := range c.Peers {
			if peer.Voter {
				m.Replicas++
			}
		}
	}
	for _, id := range p.Range {
		m.Range = append(m.Range, s.NameOf(id))
	}
	seen := map[string]bool{}
	for _, t := range tablets {
		m.Tablets = append(m.Tablets, TabletMeta{t.ID, t.Partition.Start, t.Partition.End, t.Partition.Buckets})
		lower, upper := t.Partition.Lower(), t.Partition.Upper()
		if k := fmt.Sprintf("%x %x", lower, upper); seen[k] {
			continue
		} else {
			seen[k] = true
		}
		low, err1 := p.RangeTexts(s, lower)
		high, err2 := p.RangeTexts(s, upper)
		if err1 != nil || err2 != nil {
			continue
		}
		if i := slices.IndexFunc(p.Custom,
			func(c meta.RangeHash) bool { return string(c.Lower) == string(lower) }); i >= 0 {
			m.Custom = append(m.Custom, RangeMeta{low, high, hashMeta(s, p.Custom[i].Hash)})
		} else {
			m.Ranges = append(m.Ranges, RangeMeta{Lower: low, Upper: high})
		}
	}
	return m
}

func hashMeta(s *meta.Schema, dims []meta.HashDimension) (out []HashMeta) {
	for _, d := range dims {
		h := HashMeta{Buckets: d.Buckets, Seed: d.Seed}
		for _, id := range d.Columns {
			h.Columns = append(h.Columns, s.NameOf(id))
		}
		out = append(out, h)
	}
	return out
}

// Newest returns the tablet with the newest schema, among those with data if there are any. ts must not be empty.
func Newest(ts []*Tablet) *Tablet {
	out := ts[0]
	for _, tb := range ts {
		if tb.HasData() && (!out.HasData() || tb.SchemaVersion > out.SchemaVersion) {
			out = tb
		}
	}
	return out
}

// NameOf returns the name that most of the superblocks with the newest schema give a table.
func NameOf(ts []*Tablet) (name string) {
	top, of := Newest(ts), map[string]int{}
	for _, tb := range ts {
		for _, r := range tb.Replicas() {
			if r.SchemaVersion != top.SchemaVersion || r.HasData() != top.HasData() {
				continue
			}
			if of[r.Table]++; of[r.Table] > of[name] {
				name = r.Table
			}
		}
	}
	return name
}

// Decrypted is format.Decrypter: pages are read through the table's own tree, which may decrypt them.
func (t *Table) Decrypted(tree store.Tree) store.Tree { return fs.Over(t.Tree, tree) }
