package laws_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"stoa"
)

// splitsOf returns the splits of the only source of a table, or of several, in one split if they fit.
func splitsOf(t *testing.T, apart bool, places ...string) (out []stoa.Split, table *stoa.Table) {
	t.Helper()
	table, err := stoa.OpenAll(context.Background(), places, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	for s, err := range table.PlanBy(context.Background(), stoa.ScanSpec{},
		stoa.PlanOptions{Target: 1 << 40, Apart: apart}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out, table
}

// TestBucketsOfSplits: if rows of different buckets are kept apart, each split says which it has, and no value of the
// bucket column is in two buckets. A split of several buckets, or of several tables, says none. The tables are of real
// systems, each with the values of rows by which that system spread them.
func TestBucketsOfSplits(t *testing.T) {
	type place struct {
		place, hash, by string
		count, rows     int
	}
	places := []place{{"corpus/carbon/2.3.0/managed#managed_bucket", "spark", "name", 4, 300}}
	if whole := os.Getenv("STOA_CORPUS"); whole != "" {
		places = append(places, place{whole + "/kudu/fs_log#part", "kudu 7", "id", 2, 400})
	}
	for _, c := range places {
		splits, table := splitsOf(t, true, c.place)
		l := table.Layout()
		if l.BucketHash != c.hash || l.Buckets != c.count || len(l.BucketBy) != 1 || l.BucketBy[0] != c.by {
			t.Fatalf("%s: %+v", c.place, l)
		}
		found, in, rows := map[string]int{}, map[int]bool{}, 0
		for _, s := range splits {
			if s.Bucket == nil || *s.Bucket < 0 || *s.Bucket >= c.count {
				t.Fatalf("%s: split %d is of bucket %v", c.place, s.N, s.Bucket)
			}
			in[*s.Bucket] = true
			part, err := stoa.OpenSplit(context.Background(), s, stoa.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for b, err := range part.Scan(context.Background(), stoa.ScanSpec{}) {
				if err != nil {
					t.Fatal(err)
				}
				values := b.Column(b.Schema().FieldIndices(c.by)[0])
				for i := range values.Len() {
					v := values.ValueStr(i)
					if was, ok := found[v]; ok && was != *s.Bucket {
						t.Fatalf("%s: %s is in the buckets %d and %d", c.place, v, was, *s.Bucket)
					}
					found[v] = *s.Bucket
					rows++
				}
			}
			part.Close()
		}
		if len(in) != c.count || rows != c.rows {
			t.Errorf("%s: %d rows in %d buckets", c.place, rows, len(in))
		}
		if splits, _ = splitsOf(t, false, c.place); len(splits) != 1 || splits[0].Bucket != nil {
			t.Errorf("%s: %d splits, the first of bucket %v", c.place, len(splits), splits[0].Bucket)
		}
		dir, name, _ := strings.Cut(c.place, "#")
		if strings.HasPrefix(c.hash, "kudu") {
			continue // two of Kudu's places are read as one, which no split can name
		}
		again := t.TempDir()
		if err := os.CopyFS(again, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		splits, table = splitsOf(t, true, c.place, again+"#"+name)
		if table.Layout().BucketHash != "" {
			t.Errorf("%s twice: %+v", c.place, table.Layout())
		}
		for _, s := range splits {
			if s.Bucket != nil {
				t.Errorf("%s twice: a split is of bucket %d", c.place, *s.Bucket)
			}
		}
	}
}
