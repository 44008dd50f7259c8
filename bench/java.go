package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/bench/columns"
	"stoa/pred"
)

// java runs jvm/peer.
func java(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "jvm/peer", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("jvm/peer %s: %w", args[0], err)
	}
	return out, nil
}

// prepareJava has a peer write its own files of the rows to a directory of its name.
func prepareJava(ctx context.Context, what, folder string) error {
	if _, err := os.Stat(filepath.Join(folder, what)); err == nil {
		return nil
	}
	tmp, err := os.MkdirTemp(folder, "new-"+what)
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if _, err := java(ctx, what, "prepare", tmp, fmt.Sprint(*nRows)); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(folder, what))
}

// measured has a peer measured in Java, and compares the checksums it read with the formula's; alone names what does
// not cover all rows.
func (b *bench) measured(alone string, args ...string) (map[string]peer, error) {
	out, err := java(b.ctx, args...)
	if err != nil {
		return nil, err
	}
	var peers map[string]peer
	if err := json.Unmarshal(out, &peers); err != nil {
		return nil, err
	}
	for name, p := range peers {
		if name == alone {
			continue
		}
		if err := sameSums(args[0]+" in Java, "+name, b.sums, p.Sums); err != nil {
			return nil, err
		}
	}
	return peers, nil
}

// opened returns the time of opening and scanning everything; the readers in Java do both in one step, too.
func (b *bench) opened(at string, alloc memory.Allocator) (float64, error) {
	return best(processor, func() error {
		t, err := stoa.Open(b.ctx, at, stoa.OpenOptions{})
		if err != nil {
			return err
		}
		defer t.Close()
		n, err := count(t.Scan(b.ctx, stoa.ScanSpec{Alloc: alloc}), nil)
		if err == nil && n != int64(*nRows) {
			err = fmt.Errorf("%d rows came", n)
		}
		return err
	})
}

// codecs are the codecs with which trevni is measured, and their names in the table.
var codecs = []struct{ codec, sum, name string }{{"null", "null", "uncompressed"}, {"snappy", "crc32", "Snappy"}}

// trevni scans files that Avro wrote, and writes files; Avro reads what stoa wrote.
func (b *bench) trevni() error {
	tmp, err := tempDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	writes := map[string]written{}
	all := batches()
	for _, c := range codecs {
		o := stoa.CreateOptions{To: "trevni-avro", Opts: map[string]string{"codec": c.codec, "checksum": c.sum}}
		if writes[c.codec], err = b.create(filepath.Join(tmp, "stoa-"+c.codec+".trv"), o, all); err != nil {
			return err
		}
	}
	all = nil // while it is alive, the garbage collector would hardly run
	runtime.GC()
	folder := filepath.Join(b.folder, "trevni")
	peers, err := b.measured("", "trevni", "measure", folder, fmt.Sprint(*nRows), tmp)
	if err != nil {
		return err
	}
	for _, c := range codecs {
		at := filepath.Join(folder, "trevni-"+c.codec+".trv")
		if err := b.check(at, "stoa, of Avro's file"); err != nil {
			return err
		}
		fresh, err := b.opened(at, nil)
		if err != nil {
			return err
		}
		pooled, err := b.opened(at, stoa.NewPool())
		if err != nil {
			return err
		}
		columns, records := peers["scan columns "+c.codec].Seconds, peers["scan records "+c.codec].Seconds
		line("Trevni scan, 10 columns, "+c.name+", pool", "Avro's AvroColumnReader (rows)", pooled, records, "10×",
			"20×")
		line("the same", "Avro's ColumnFileReader (columns)", pooled, columns, "10×", "20×")
		line("the same, fresh buffers", "Avro's AvroColumnReader (rows)", fresh, records, "", "")
		line("the same", "Avro's ColumnFileReader (columns)", fresh, columns, "", "")
	}
	for _, c := range codecs {
		w, rows := writes[c.codec], peers["write records "+c.codec].Seconds
		line("Trevni write, 10 columns, "+c.name, "Avro's AvroColumnWriter (rows)", w.alone, rows, "", "")
		line("the same", "Avro's ColumnFileWriter (columns)", w.alone, peers["write columns "+c.codec].Seconds, "", "")
		line("the same, read back and compared", "Avro's AvroColumnWriter (rows)", w.proved, rows, "", "")
	}
	return nil
}

// carbon scans a table that CarbonData wrote, and writes one; CarbonData reads what stoa wrote.
func (b *bench) carbon() error {
	tmp, err := tempDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	o := stoa.CreateOptions{To: "carbon", Rows: -1,
		Opts: map[string]string{"blocklet-size": "16", "block-size": "64", "sort-columns": "key"}}
	write, err := b.create(filepath.Join(tmp, "stoa")+"/", o, timeAsInt64(batches()))
	if err != nil {
		return err
	}
	runtime.GC()
	at := filepath.Join(b.folder, "carbon", "carbon")
	key := b.keys[0]
	peers, err := b.measured("key", "carbon", "measure", filepath.Dir(at), fmt.Sprint(*nRows), tmp, fmt.Sprint(key))
	if err != nil {
		return err
	}
	if err := b.check(at, "stoa, of CarbonData's table"); err != nil {
		return err
	}
	fresh, err := b.opened(at, nil)
	if err != nil {
		return err
	}
	pooled, err := b.opened(at, stoa.NewPool())
	if err != nil {
		return err
	}
	vector, row := peers["scan vector"].Seconds, peers["scan row"].Seconds
	line("Carbon V3 scan, 10 columns, pool", "CarbonData's vector reader", pooled, vector, "10×", "30×")
	line("the same", "CarbonData's row reader", pooled, row, "10×", "30×")
	line("the same, fresh buffers", "CarbonData's vector reader", fresh, vector, "", "")
	line("the same", "CarbonData's row reader", fresh, row, "", "")
	one, err := b.carbonKey(at, key, peers["key"])
	if err != nil {
		return err
	}
	line("Carbon V3, one key, sort column", "CarbonData's vector reader", one, peers["key"].Seconds, "", "")
	line("Carbon V3 write, sorted, 10 columns", "CarbonData's CarbonWriter", write.alone, peers["write"].Seconds,
		"", "")
	line("the same, read back and compared", "CarbonData's CarbonWriter", write.proved, peers["write"].Seconds, "", "")
	return nil
}

// carbonKey returns the time of opening the table and finding the row of a key.
func (b *bench) carbonKey(at string, key int64, p peer) (float64, error) {
	e, err := pred.Parse(fmt.Sprint("key = ", key))
	if err != nil {
		return 0, err
	}
	find := func(sums map[string]sum) error {
		t, err := stoa.Open(b.ctx, at, stoa.OpenOptions{})
		if err != nil {
			return err
		}
		defer t.Close()
		_, err = count(t.Scan(b.ctx, stoa.ScanSpec{Filter: e}), sums)
		return err
	}
	sums := map[string]sum{}
	if err := find(sums); err != nil {
		return 0, err
	}
	if err := sameSums("CarbonData", sums, p.Sums); err != nil {
		return 0, err
	}
	return best(processor, func() error { return find(nil) })
}

// timeAsInt64 returns the rows with the microseconds of column time as integers: CarbonData's timestamps are
// milliseconds.
func timeAsInt64(in []arrow.RecordBatch) (out []arrow.RecordBatch) {
	fields := columns.Schema.Fields()
	at := columns.Schema.FieldIndices("time")[0]
	fields[at].Type = arrow.PrimitiveTypes.Int64
	sc := arrow.NewSchema(fields, nil)
	for _, rec := range in {
		cols := append([]arrow.Array(nil), rec.Columns()...)
		d := cols[at].Data()
		cols[at] = array.NewInt64Data(array.NewData(arrow.PrimitiveTypes.Int64, d.Len(), d.Buffers(), nil,
			d.NullN(), d.Offset()))
		out = append(out, array.NewRecordBatch(sc, cols, rec.NumRows()))
	}
	return out
}
