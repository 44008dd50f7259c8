package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/bench/columns"
	"stoa/pred"
)

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
	cmd := exec.CommandContext(ctx, "jvm/peer", what, "prepare", tmp, fmt.Sprint(*nRows))
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("jvm/peer %s: %w", what, err)
	}
	return os.Rename(tmp, filepath.Join(folder, what))
}

// inJava starts jvm/peer, and compares the checksums it read with the formula's; alone names what does not cover all
// rows.
func (b *bench) inJava(what, alone string, args ...string) (*peer, error) {
	args = append([]string{what, "measure", filepath.Join(b.folder, what), fmt.Sprint(*nRows), b.tmp}, args...)
	p, err := b.start("java "+what, nil, "jvm/peer", args...)
	if err != nil {
		return nil, err
	}
	for name, o := range p.offers {
		if name == alone {
			continue
		}
		if err := sameSums(what+" in Java, "+name, b.sums, o.Sums); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// whole opens and scans everything; the readers in Java do both in one step, too.
func (b *bench) whole(at string, alloc memory.Allocator) run {
	return timed(processor, 1, func() error {
		t, err := stoa.Open(b.ctx, at, stoa.OpenOptions{})
		if err != nil {
			return err
		}
		defer t.Close()
		n, err := count(t.Scan(b.ctx, stoa.ScanSpec{Alloc: alloc}), nil)
		if err == nil && n.rows != int64(*nRows) {
			err = fmt.Errorf("%d rows came", n.rows)
		}
		return err
	})
}

// ownWhole adds the scans of what a peer wrote, and their limit.
func (b *bench) ownWhole(name, at string) error {
	if err := b.check(at, "stoa, of "+at); err != nil {
		return err
	}
	b.runs[name+" scan, pool"] = b.whole(at, stoa.NewPool())
	b.runs[name+" scan, fresh buffers"] = b.whole(at, nil)
	stored, err := filesBelow(at, nil)
	if err != nil {
		return err
	}
	t, err := stoa.Open(b.ctx, at, stoa.OpenOptions{})
	if err != nil {
		return err
	}
	defer t.Close()
	n, err := count(t.Scan(b.ctx, stoa.ScanSpec{}), map[string]sum{})
	b.runs["limit, "+name] = limit(stored, n.bytes)
	return err
}

// codecs are the codecs with which trevni is measured, and their names in the table.
var codecs = []struct{ codec, sum, name string }{{"null", "null", "uncompressed"}, {"snappy", "crc32", "Snappy"}}

// ownTrevni scans files that Avro wrote, and writes files; Avro reads what stoa wrote.
func (b *bench) ownTrevni() error {
	for _, c := range codecs {
		o := stoa.CreateOptions{To: "trevni-avro", Opts: map[string]string{"codec": c.codec, "checksum": c.sum}}
		to := filepath.Join(b.tmp, "stoa-"+c.codec+".trv")
		if err := b.create("trevni "+c.codec+" write", to, o, same); err != nil {
			return err
		}
		at := filepath.Join(b.folder, "trevni", "trevni-"+c.codec+".trv")
		if err := b.ownWhole("trevni "+c.codec, at); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) peerTrevni() error {
	_, err := b.inJava("trevni", "")
	return err
}

func trevniLines() (out [][]line) {
	const rows, cols = "Avro's AvroColumnReader (rows)", "Avro's ColumnFileReader (columns)"
	for i, c := range codecs {
		own, best := "trevni "+c.codec+" scan, ", "limit, trevni "+c.codec
		records, columns := "java trevni scan records "+c.codec, "java trevni scan columns "+c.codec
		floor := [][2]string{{"7×", "10×"}, {"4×", "6×"}}[i]
		out = append(out, []line{
			{"Trevni scan, 10 columns, " + c.name + ", pool", rows, own + "pool", records, best, "", ""},
			{"the same", cols, own + "pool", columns, best, floor[0], floor[1]},
			{"the same, fresh buffers", rows, own + "fresh buffers", records, best, "", ""},
			{"the same", cols, own + "fresh buffers", columns, best, "", ""}})
	}
	for _, c := range codecs {
		own, records := "trevni "+c.codec+" write", "java trevni write records "+c.codec
		out = append(out, []line{
			{"Trevni write, 10 columns, " + c.name, "Avro's AvroColumnWriter (rows)", own, records, "", "", ""},
			{"the same", "Avro's ColumnFileWriter (columns)", own, "java trevni write columns " + c.codec, "", "", ""},
			{"the same, read back and compared", "Avro's AvroColumnWriter (rows)", own + ", proved", records, "", "",
				""}})
	}
	return out
}

// ownCarbon scans a table that CarbonData wrote, and writes one; CarbonData reads what stoa wrote.
func (b *bench) ownCarbon() error {
	o := stoa.CreateOptions{To: "carbon", Rows: -1,
		Opts: map[string]string{"blocklet-size": "16", "block-size": "64", "sort-columns": "key"}}
	if err := b.create("carbon write", filepath.Join(b.tmp, "stoa")+"/", o, timeAsInt64); err != nil {
		return err
	}
	at := filepath.Join(b.folder, "carbon", "carbon")
	b.runs["carbon key"] = timed(processor, 1, func() error { return b.carbonKey(at, nil) })
	return b.ownWhole("carbon", at)
}

func (b *bench) peerCarbon() error {
	p, err := b.inJava("carbon", "key", fmt.Sprint(b.keys[0]))
	if err != nil {
		return err
	}
	sums := map[string]sum{}
	if err := b.carbonKey(filepath.Join(b.folder, "carbon", "carbon"), sums); err != nil {
		return err
	}
	return sameSums("CarbonData", sums, p.offers["key"].Sums)
}

func carbonLines() [][]line {
	const vector, row, best = "CarbonData's vector reader", "CarbonData's row reader", "limit, carbon"
	const pool, fresh, writer = "carbon scan, pool", "carbon scan, fresh buffers", "CarbonData's CarbonWriter"
	return [][]line{{
		{"Carbon V3 scan, 10 columns, pool", vector, pool, "java carbon scan vector", best, "22×", "30×"},
		{"the same", row, pool, "java carbon scan row", best, "", ""},
		{"the same, fresh buffers", vector, fresh, "java carbon scan vector", best, "", ""},
		{"the same", row, fresh, "java carbon scan row", best, "", ""},
	}, {
		{"Carbon V3, one key, sort column", vector, "carbon key", "java carbon key", "", "", ""},
	}, {
		{"Carbon V3 write, sorted, 10 columns", writer, "carbon write", "java carbon write", "", "12×", "20×"},
		{"the same, read back and compared", writer, "carbon write, proved", "java carbon write", "", "", ""},
	}}
}

// carbonKey opens the table and finds the row of a key.
func (b *bench) carbonKey(at string, sums map[string]sum) error {
	e, err := pred.Parse(fmt.Sprint("key = ", b.keys[0]))
	if err != nil {
		return err
	}
	t, err := stoa.Open(b.ctx, at, stoa.OpenOptions{})
	if err != nil {
		return err
	}
	defer t.Close()
	_, err = count(t.Scan(b.ctx, stoa.ScanSpec{Filter: e}), sums)
	return err
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
