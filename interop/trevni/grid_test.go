//go:build interop

package trevni

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/format"
	avro "stoa/format/trevni"
	"stoa/store"
)

// file is a file for the judge, and the expected rows.
type file struct {
	path  string
	batch arrow.RecordBatch
	what  string
}

var home = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("./get.sh").Output()
	return strings.TrimSpace(string(out)), err
})

// java runs the judge main of an Avro version and returns its output.
func java(t *testing.T, version, main string, args ...string) []byte {
	t.Helper()
	dir, err := home()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("java", append([]string{"-Xmx600m", "-cp",
		dir + "/" + version + "/target/classes:" + dir + "/" + version + "/target/lib/*", "peer." + main}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && len(out) == 0 {
		t.Fatal(err, stderr.String())
	}
	return out
}

// write writes a file.
func write(t *testing.T, name string, b arrow.RecordBatch, opts map[string]string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".trv")
	ctx := context.Background()
	w, err := avro.AvroFormat.Create(ctx, store.Local{}.Sink(path, nil), b.Schema(),
		format.WriteOptions{Rows: -1, Opts: opts})
	if err == nil {
		err = w.Write(ctx, b)
	}
	if err == nil {
		_, err = w.Close(ctx)
	}
	if err != nil {
		t.Fatal(name, err)
	}
	return path
}

// judge has AvroColumnReader read the files and compares every row. It returns how many files, and rows in them, were
// read correctly.
func judge(t *testing.T, version string, files []file) (right, rows int) {
	t.Helper()
	var args []string
	for _, f := range files {
		args = append(args, f.path)
	}
	out := bufio.NewScanner(bytes.NewReader(java(t, version, "Rows", args...)))
	out.Buffer(nil, 1<<26)
	i, n, bad := -1, 0, false
	var columns []string // files of which only the columns are read
	for out.Scan() {
		word, rest, _ := strings.Cut(out.Text(), " ")
		switch word {
		case "FILE":
			i, n, bad = i+1, 0, false
		case "ROW":
			if err := row(files[i].batch, n, rest); err != nil && !bad {
				t.Errorf("%s, Avro %s, row %d: %v", files[i].what, version, n, err)
				bad = true
			}
			n++
		case "END":
			if rest != fmt.Sprint(files[i].batch.NumRows()) {
				t.Errorf("%s, Avro %s: got %s rows, want %d", files[i].what, version, rest,
					files[i].batch.NumRows())
			} else if !bad {
				right, rows = right+1, rows+n
			}
		default:
			if version == "1.7.4" && strings.Contains(rest, `Not in union ["null",{"type":"fixed"`) {
				columns = append(columns, files[i].path) // its own bug: a fixed in a union is returned as bytes
				continue
			}
			t.Errorf("%s, Avro %s: %s", files[i].what, version, out.Text())
		}
	}
	if len(columns) > 0 {
		read := strings.Count(string(java(t, version, "Judge", columns...)), `{"ok":true,"rows":120}`)
		if read != len(columns) {
			t.Errorf("Avro %s: %d of %d files are read column by column", version, read, len(columns))
		}
		t.Logf("COUNT version 1 by Avro %s: %d files only column by column, because of its own bug", version, read)
	}
	if out.Err() != nil || i+1 != len(files) {
		t.Errorf("%d files of %d: %v", i+1, len(files), out.Err())
	}
	return right, rows
}

// row compares row n with what Avro printed.
func row(b arrow.RecordBatch, n int, text string) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		return err
	}
	if len(v) != int(b.NumCols()) {
		return fmt.Errorf("got %d fields, want %d", len(v), b.NumCols())
	}
	for c, f := range b.Schema().Fields() {
		if err := Equal(Avro, f, b.Column(c), n, v[f.Name]); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

// flat returns a schema with columns of all types that Avro's schemas can express, so not fixed32 and fixed64.
func flat() *arrow.Schema {
	var fields []arrow.Field
	for i, t := range []arrow.DataType{arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Float64, arrow.FixedWidthTypes.Boolean,
		arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, &arrow.FixedSizeBinaryType{ByteWidth: 3},
		arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16,
		arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint32, arrow.FixedWidthTypes.Date32,
		arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64us, arrow.FixedWidthTypes.Timestamp_ms,
		&arrow.TimestampType{Unit: arrow.Microsecond}, &arrow.Decimal128Type{Precision: 20, Scale: 4}} {
		fields = append(fields, arrow.Field{Name: fmt.Sprintf("r%d", i), Type: t},
			arrow.Field{Name: fmt.Sprintf("n%d", i), Type: t, Nullable: true})
	}
	fields = append(fields, arrow.Field{Name: "nothing", Type: arrow.Null, Nullable: true})
	return arrow.NewSchema(fields, nil)
}

// nested returns a random schema.
func nested(seed uint64) *arrow.Schema {
	r := rand.New(rand.NewPCG(seed, 11))
	var fields []arrow.Field
	for i := range 3 {
		fields = append(fields, RandomField(r, fmt.Sprintf("c%d", i), 1+r.IntN(4), true))
	}
	return arrow.NewSchema(fields, nil)
}

// TestGrid: types × codec × checksum × nesting × block size × version, read by Avro's own reader.
func TestGrid(t *testing.T) {
	for _, version := range []string{"2", "1"} {
		var files []file
		for _, codec := range []string{"null", "deflate", "snappy", "bzip2"} {
			for _, sum := range []string{"crc32", "null"} {
				for _, size := range []string{"65536", "200"} {
					for k := range uint64(9) {
						sc := flat()
						if k > 0 {
							sc = nested(k)
						}
						o := map[string]string{"version": version, "codec": codec, "checksum": sum, "block-size": size}
						if k == 0 {
							o["first-values"] = "r0,r1,r3,r5"
						}
						what := fmt.Sprintf("schema %d %v", k, o)
						b := RandomBatch(rand.New(rand.NewPCG(k, 1)), sc, 120)
						files = append(files, file{write(t, fmt.Sprint("f", len(files)), b, o), b, what})
					}
				}
			}
		}
		for _, reader := range map[string][]string{"2": {"1.12.2"}, "1": {"1.7.4", "1.12.2"}}[version] {
			right, rows := judge(t, reader, files)
			t.Logf("COUNT version %s by Avro %s: %d of %d files, %d rows", version, reader, right, len(files), rows)
		}
	}
}

// TestColumns: Judge prints columns, lengths and metadata; here it must read all rows and find the file's metadata.
func TestColumns(t *testing.T) {
	b := RandomBatch(rand.New(rand.NewPCG(1, 1)), nested(1), 50)
	md := arrow.NewMetadata([]string{"user.key"}, []string{"value é"})
	path := write(t, "m", withMetadata(b, md), nil)
	out := string(java(t, "1.12.2", "Judge", path))
	if !strings.Contains(out, `{"ok":true,"rows":50}`) || !strings.Contains(out, `"user.key":"dmFsdWUgw6k="`) {
		t.Errorf("%.2000s", out)
	}
	t.Logf("COUNT metadata: 1 file")
}

func withMetadata(b arrow.RecordBatch, md arrow.Metadata) arrow.RecordBatch {
	return array.NewRecordBatch(arrow.NewSchema(b.Schema().Fields(), &md), b.Columns(), b.NumRows())
}

// TestJudgeCanFail: a changed byte is noticed.
func TestJudgeCanFail(t *testing.T) {
	b := RandomBatch(rand.New(rand.NewPCG(1, 1)), flat(), 50)
	path := write(t, "m", b, nil)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-6] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	out := string(java(t, "1.12.2", "Rows", path))
	if !strings.Contains(out, "FAIL") {
		t.Errorf("a changed byte is not noticed: %.500s", out)
	}
	t.Logf("a changed byte: noticed: %.120s", out[max(0, strings.Index(out, "FAIL")):])
}
