package carbon_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/klauspost/compress/snappy"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/store"
)

// streamCopy copies the table of streams to a directory.
func streamCopy(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sink")
	if err := os.CopyFS(dir, os.DirFS(streaming)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// rowBytes returns the decompressed rows of a row-format file.
func rowBytes(t *testing.T, tree store.Tree, file string) (out []byte) {
	t.Helper()
	src, err := tree.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	for _, at := range blocklets(t, tree, file) {
		b := make([]byte, at.Len)
		if _, err := src.ReadAt(t.Context(), b, at.Off); err != nil {
			t.Fatal(err)
		}
		b = b[16:] // the sync marker
		b = b[4+binary.BigEndian.Uint32(b):]
		rows, err := snappy.Decode(nil, b[4:4+binary.BigEndian.Uint32(b)])
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rows...)
	}
	return out
}

// batchesOf has f called with the batches of a table.
func batchesOf(t *testing.T, dir string, f func(b arrow.RecordBatch)) *arrow.Schema {
	t.Helper()
	x, err := stoa.Open(t.Context(), dir, stoa.OpenOptions{Formats: formats})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for b, err := range x.Scan(t.Context(), stoa.ScanSpec{}) {
		if err != nil {
			t.Fatal(err)
		}
		f(b)
	}
	return x.Schema()
}

// appendRows has stoa write the rows of the table of streams as a segment of rows.
func appendRows(t *testing.T, dir string) error {
	var all []arrow.RecordBatch
	sc := batchesOf(t, streaming, func(b arrow.RecordBatch) { b.Retain(); all = append(all, b) })
	c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Append(t.Context(), sc, func(yield func(arrow.RecordBatch, error) bool) {
		for _, b := range all {
			if !yield(b, nil) {
				return
			}
		}
	}, stoa.AppendOptions{Typed: carbon.WriteOptions{Layout: carbon.LayoutRows}})
	return err
}

// TestStreamWritten: the rows of CarbonData's file, written by stoa, are the same bytes.
func TestStreamWritten(t *testing.T) {
	dir := streamCopy(t)
	if err := appendRows(t, dir); err != nil {
		t.Fatal(err)
	}
	tree, file, _ := streamed(t)
	mine := filepath.Join(dir, "Fact/Part0/Segment_1/part-0-0_batchno0-0-1-0.snappy.carbondata")
	got, want := rowBytes(t, store.Local{}, mine), rowBytes(t, tree, file)
	if len(want) == 0 || !slices.Equal(got, want) {
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		t.Errorf("%d bytes, want %d; they differ from %d on", len(got), len(want), i)
	}
	list := entries(t, dir)
	if e := list[1]; e["loadStatus"] != "Streaming Finish" || e["fileFormat"] != "row_v1" {
		t.Error(e)
	}
	healthy(t, dir)
}

// TestStreamsHandedOff: finished segments, and with Close the others, become segments of columns with the same rows.
func TestStreamsHandedOff(t *testing.T) {
	dir := streamCopy(t)
	if err := appendRows(t, dir); err != nil {
		t.Fatal(err)
	}
	want := jsonRows(t, filepath.Join(golden2, "streaming/expected.jsonl.gz"))
	want = append(want, want...) // as Spark read them, and as stoa wrote them again
	c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		end  bool
		from string
		to   string
	}{{false, "1", "2"}, {false, "", ""}, {true, "0", "3"}} {
		o := stoa.CompactOptions{CompactOptions: format.CompactOptions{Streams: true, Close: x.end}}
		for _, o.DryRun = range []bool{true, false} {
			done, err := c.Compact(t.Context(), o)
			if err != nil || len(done) != len(x.from) ||
				len(done) == 1 && (done[0].From[0] != x.from || done[0].To != x.to) {
				t.Fatalf("%+v: %v, %v", x, done, err)
			}
		}
		sc, rows, err := read(t, dir, stoa.OpenOptions{}, stoa.ScanSpec{})
		if err != nil {
			t.Fatal(err)
		}
		if d := differ(rows, wanted(sc, want), true); d != "" {
			t.Fatalf("%+v: %s", x, d)
		}
	}
	for i, want := range []string{"Compacted 3", "Compacted 2", "Success ", "Success "} {
		e := entries(t, dir)[i]
		if got := e["loadStatus"] + " " + e["mergedLoadName"]; got != want {
			t.Errorf("segment %d: %s, want %s", i, got, want)
		}
	}
	healthy(t, dir)
}

// TestStreamsRefused: what CarbonData would not see in a streaming segment, or would read wrongly, is refused; so are
// tables that cannot have one.
func TestStreamsRefused(t *testing.T) {
	dir := streamCopy(t)
	c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	no := "false"
	for name, do := range map[string]func() error{
		"delete": func() error {
			_, err := c.Delete(t.Context(), stoa.DeleteOptions{Where: "id < 5"})
			return err
		},
		"drop-column": func() error { return c.DropColumn(t.Context(), stoa.DropColumnOptions{Column: "n"}) },
		"set-property": func() error {
			o := stoa.SetPropertiesOptions{Properties: map[string]*string{"streaming": &no}}
			return c.SetProperties(t.Context(), o)
		},
		"no streaming":    func() error { return appendRows(t, newOrders(t, carbon.TableSpec{})) },
		"with partitions": func() error { return loadRows(t, carbon.TableSpec{Partition: []string{"day"}}) },
		"with buckets":    func() error { return loadRows(t, carbon.TableSpec{Buckets: 2, BucketBy: []string{"id"}}) },
	} {
		if err := do(); !errors.Is(err, fault.Unsupported) && !errors.Is(err, fault.Invalid) {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
	if _, got, err := read(t, dir, stoa.OpenOptions{}, stoa.ScanSpec{}); err != nil || len(got) != 420 {
		t.Error(len(got), err)
	}
}

// loadRows loads orders as a segment of rows into a new table.
func loadRows(t *testing.T, spec carbon.TableSpec) error {
	spec.Properties = map[string]string{"streaming": "true"}
	l, err := carbon.BeginLoad(t.Context(), newOrders(t, spec), orders(0, 10).Schema(),
		carbon.LoadOptions{Opts: map[string]string{"layout": "rows"}})
	if err == nil {
		err = errors.Join(l.Write(t.Context(), orders(0, 10)), l.Abort(t.Context()))
	}
	return err
}

// streamVerbs are the changes of streaming segments that TestVerbsCrash kills.
func streamVerbs() []killedVerb {
	made := func(t *testing.T) string {
		dir := newOrders(t, carbon.TableSpec{Properties: map[string]string{"streaming": "true"}}, [2]int{0, 150})
		c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{})
		if err == nil {
			b := orders(150, 300)
			_, err = c.Append(t.Context(), b.Schema(), once(b), rowLayout())
		}
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	return []killedVerb{
		{name: "load --opt layout=rows", after: span(0, 2300), table: made,
			do: appends(orders(300, 2300), rowLayout())},
		{name: "compact --streaming", after: span(0, 300), table: made, do: compactStreams, is: layouts,
			was: "Success columns,Streaming Finish row_v1", now: "Success columns,Success columns"},
	}
}

func rowLayout() stoa.AppendOptions {
	return stoa.AppendOptions{Typed: carbon.WriteOptions{Layout: carbon.LayoutRows}}
}

func compactStreams(ctx context.Context, c *stoa.Changer) error {
	_, err := c.Compact(ctx, stoa.CompactOptions{CompactOptions: format.CompactOptions{Streams: true}})
	return err
}

// layouts returns the states and file formats of the segments that count.
func layouts(t *testing.T, dir string) any {
	var out []string
	for _, e := range entries(t, dir) {
		if s := e["loadStatus"]; s == "Success" || s == "Streaming Finish" {
			out = append(out, s+" "+cmp.Or(e["fileFormat"], "columns"))
		}
	}
	return strings.Join(out, ",")
}
