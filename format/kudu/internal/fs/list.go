package fs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"stoa/fault"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/codes"
	"stoa/format/kudu/internal/meta"
	"stoa/internal/sorted"
)

// ListFields are the columns of `kudu fs list`, with its names and in its order.
var ListFields = [20]string{
	"table", "table-id", "tablet-id", "partition", "rowset-id",
	"block-id", "block-kind", "column", "column-id",
	"cfile-data-type", "cfile-nullable", "cfile-encoding", "cfile-compression", "cfile-num-values", "cfile-size",
	"cfile-incompatible-features", "cfile-compatible-features", "cfile-min-key", "cfile-max-key", "cfile-delta-stats",
}

// BlockLine is a line of `kudu fs list`: a block that a superblock names, and facts from its footer.
type BlockLine struct {
	Values [20]string // by ListFields; those of the CFile are empty if Err is set or footers were not asked for
	Tablet *meta.Tablet
	RowSet int // index into Tablet.RowSets
	Block  meta.KindedBlock
	Place  Place
	Err    error // why the block, or its footer, cannot be read
}

// ListBlocks calls yield for each block that the tablets name, in Kudu's order, until yield returns false. With footers
// it reads the footer of each block; damage of a block is recorded in its line. Other errors end the list.
func (f *FS) ListBlocks(ctx context.Context, tablets []*meta.Tablet, footers bool, yield func(BlockLine) bool) error {
	for _, t := range tablets {
		partition := t.Partitioning.Text(&t.Schema, &t.Partition)
		for i := range t.RowSets {
			for _, b := range t.RowSets[i].Blocks() {
				l := BlockLine{Tablet: t, RowSet: i, Block: b}
				v := &l.Values
				v[0], v[1], v[2], v[3], v[4] = t.Table, t.TableID, t.ID, partition,
					strconv.FormatUint(t.RowSets[i].ID, 10)
				v[5], v[6] = strconv.FormatUint(b.ID, 10), b.Kind
				if b.Column >= 0 {
					v[7], v[8] = t.Schema.NameOf(b.Column), strconv.Itoa(int(b.Column))
				}
				l.Place, l.Err = f.PlaceOf(ctx, t, b.BlockRef)
				if l.Err == nil && footers {
					l.Err = f.footerValues(ctx, &l)
				}
				if l.Err != nil && !errors.As(l.Err, new(*fault.Error)) {
					return l.Err
				}
				if !yield(l) {
					return nil
				}
			}
		}
	}
	return ctx.Err()
}

// footerValues fills in the values that come from the footer.
func (f *FS) footerValues(ctx context.Context, l *BlockLine) error {
	x, err := f.readFooter(ctx, l.Place)
	if err != nil {
		return err
	}
	v := &l.Values
	v[9], v[10], v[11], v[12] = x.dataType, strconv.FormatBool(x.nullable), x.encoding, x.compression
	v[13], v[14] = strconv.FormatInt(x.values, 10), strconv.FormatInt(l.Place.At.Len, 10)
	v[15], v[16] = strconv.FormatUint(uint64(x.incompatible), 10), strconv.FormatUint(uint64(x.compatible), 10)
	for i, key := range []string{meta.KeyMin, meta.KeyMax} {
		if b, ok := x.get(key); ok {
			text, err := l.Tablet.Schema.KeyText(b)
			if err != nil {
				return fault.Locate(err, x.at, false, "footer."+key)
			}
			v[17+i] = text
		}
	}
	if b, ok := x.get(meta.KeyDeltaStats); ok {
		stats, err := cfile.ParseDeltaStats(b, x.at)
		if err != nil {
			return err
		}
		v[19] = stats.String()
	}
	return nil
}

// TableFacts are the facts that `stoa ls` shows about a table.
type TableFacts struct {
	Name, ID string
	Tablets  []*meta.Tablet
	RowSets  int
	Rows     int64 // live rows in the rowsets, without rows only in the WAL; -1 if a superblock does not state it
	Blocks   int
	Bytes    int64      // total size of the blocks that are here
	Lost     int        // blocks that are named, but missing or truncated
	Missing  []meta.Gap // parts that the table must have but no tablet here holds
	More     int64      // missing buckets beyond those in Missing
	// Uncovered are ranges that no tablet here holds. The table may have been created without them; only its master
	// knows.
	Uncovered []meta.Gap
}

// Tables groups tablets by table, sorted by name and id. The name is that of the newest schema. Tombstoned tablets are
// listed, but do not count as holding any part of the table.
func (f *FS) Tables(ctx context.Context, tablets []*meta.Tablet) ([]TableFacts, error) {
	var out []TableFacts
	at := map[string]int{}
	for _, t := range tablets {
		i, ok := at[t.TableID]
		if !ok {
			i, at[t.TableID] = len(out), len(out)
			out = append(out, TableFacts{Name: t.Table, ID: t.TableID})
		}
		x := &out[i]
		x.Tablets = append(x.Tablets, t)
		rows, bytes, blocks, lost, err := f.TabletFacts(ctx, t)
		if err != nil {
			return out, err
		}
		x.RowSets += len(t.RowSets)
		if x.Rows >= 0 && rows >= 0 {
			x.Rows += rows
		} else {
			x.Rows = -1
		}
		x.Blocks, x.Bytes, x.Lost = x.Blocks+blocks, x.Bytes+bytes, x.Lost+lost
	}
	for i := range out {
		x := &out[i]
		var newest *meta.Tablet
		for _, t := range x.Tablets {
			if !t.HasData() {
				continue
			}
			if newest == nil || t.SchemaVersion > newest.SchemaVersion {
				newest = t
			}
		}
		if newest == nil {
			newest = x.Tablets[0]
		}
		x.Name = newest.Table
		x.Missing, x.Uncovered, x.More = meta.Missing(x.Tablets)
	}
	sorted.StablyBy(out, func(a, b TableFacts) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// TabletFacts returns the rows of a tablet (see meta.Tablet.Rows), the number of its blocks, the total size of those
// that are here, and the number of those that are missing or truncated.
func (f *FS) TabletFacts(ctx context.Context, t *meta.Tablet) (rows, bytes int64, blocks, lost int, err error) {
	for i := range t.RowSets {
		for _, b := range t.RowSets[i].Blocks() {
			blocks++
			p, err := f.PlaceOf(ctx, t, b.BlockRef)
			switch {
			case err == nil:
				bytes += p.At.Len
			case errors.As(err, new(*fault.Error)):
				lost++
			default:
				return 0, 0, 0, 0, err
			}
		}
	}
	return t.Rows(), bytes, blocks, lost, nil
}

// CheckBlocks adds a finding for each missing or truncated block that a tablet names.
func (f *FS) CheckBlocks(ctx context.Context, tablets []*meta.Tablet) error {
	return f.ListBlocks(ctx, tablets, false, func(l BlockLine) bool {
		if l.Err == nil {
			return true
		}
		x := codes.Finding(LostCode(l.Place), l.Err, l.Tablet.ID)
		x.Column, x.Path = l.Values[7], fmt.Sprintf("rowsets[%d].%s", l.RowSet, l.Block.Kind)
		f.keep(x)
		return true
	})
}
