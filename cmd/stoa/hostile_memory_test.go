//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"

	"stoa"
)

// hostilePlace is a source that declares more than it holds. refused: reading it exceeds the budget.
type hostilePlace struct {
	place   string
	refused bool
}

// hostilePlaces writes such sources: long lists of empty items, shared names, endless records, bombs.
func hostilePlaces(t *testing.T) map[string]hostilePlace {
	dir := t.TempDir()
	all := map[string]hostilePlace{}
	put := func(what, name string, refused bool, parts ...[]byte) {
		place := filepath.Join(dir, name)
		if err := os.WriteFile(place, bytes.Join(parts, nil), 0o644); err != nil {
			t.Fatal(err)
		}
		all[what] = hostilePlace{place, refused}
	}
	s := func(x string) []byte { return []byte(x) }
	const million = 1_000_000

	put("JSON nested 10^6 deep", "deep.jsonl", true, s(`{"a":`), bytes.Repeat(s("["), million), s("\n"))
	var fields bytes.Buffer
	for i := range million {
		fmt.Fprintf(&fields, `,"%d":1`, i)
	}
	put("JSON of 10^6 members", "wide.jsonl", true, s(`{"a":1`), fields.Bytes(), s("}\n"))
	put("JSON line of 1 GB", "long.jsonl.gz", true, zipped(t, `{"a":"`, 1<<30, `"}`+"\n"))
	put("CSV of 10^6 columns", "wide.csv", true, s("a"), bytes.Repeat(s(",a"), million), s("\n1\n"))
	put("CSV with an endless quoted field", "long.csv.gz", true, zipped(t, "a,b\n1,\"", 1<<30, ""))

	put("Arrow shared names", "names.arrows", true, sharedNames(8<<20, 4000))
	put("Arrow bodies of zeros", "zeros.arrows", true, zeroBodies(t))

	// lists of structs without fields, one byte each, in Thrift's compact protocol
	empties := func(field byte, n uint64) []byte {
		return append(binary.AppendUvarint([]byte{field<<4 | 9, 0xf0 | 12}, n), make([]byte, n)...)
	}
	foot := func(magic string, meta ...[]byte) []byte {
		b := bytes.Join(meta, nil)
		return append(append(append(s(magic), b...), binary.LittleEndian.AppendUint32(nil, uint32(len(b)))...),
			magic...)
	}
	put("Parquet row groups", "groups.parquet", true, foot("PAR1", []byte{0x15, 2}, empties(3, 4*million), []byte{0}))
	put("Parquet elements", "elements.parquet", true, foot("PAR1", []byte{0x15, 2}, empties(1, 4*million), []byte{0}))
	put("RedFile elements", "elements.red", true,
		foot("RED1", []byte{0x15, 2}, empties(1, 4*million), []byte{0x16, 0, 0}))

	set := filepath.Join(dir, "set")
	converted("cfile")(t, set)
	own, err := os.ReadFile(filepath.Join(set, "table.json"))
	if err != nil {
		t.Fatal(err)
	}
	put("CFiles of a set", "set/table.json", true, bytes.Replace(own, s(`"columns": [`),
		append(s(`"columns": [`), bytes.Repeat(s("{},"), million)...), 1))
	all["CFiles of a set"] = hostilePlace{set, true}

	kudu := filepath.Join(dir, "kudu")
	kuduSample(t, kudu)
	super, err := filepath.Glob(filepath.Join(kudu, "wal/tablet-meta/*"))
	if err != nil || len(super) != 1 {
		t.Fatal(super, err)
	}
	put("Kudu rowsets", strings.TrimPrefix(super[0], dir+"/"), true, container("kudu.tablet.TabletSuperBlockPB",
		bytes.Repeat([]byte{0x32, 4, 8, 1, 16, 0}, million)))
	all["Kudu rowsets"] = hostilePlace{kudu, true}

	put("Kudu log columns", "wal-000000001", true, logSegment(bytes.Repeat(s("\x0a\x05\x12\x01a\x18\x01"), million),
		nil))
	put("Kudu log entries", "wal-000000002", false, logSegment(nil, bytes.Repeat([]byte{0x0a, 0}, 4*million)))
	backup := filepath.Join("backup", strings.Repeat("0", 32)+"-t", "1700000000000")
	if err := os.MkdirAll(filepath.Join(dir, backup), 0o755); err != nil {
		t.Fatal(err)
	}
	put("Kudu backup", filepath.Join(backup, ".kudu-metadata.json"), true, append(append(s(`{"columns":[{}`),
		bytes.Repeat(s(",{}"), million)...), s("]}\n")...))
	put("Kudu backup", filepath.Join(backup, "part-00000.parquet"), true,
		foot("PAR1", []byte{0x15, 2}, empties(3, 4*million), []byte{0}))
	all["Kudu backup"] = hostilePlace{filepath.Join(dir, backup), true}

	for to, ext := range map[string]string{"parquet": ".parquet", "redfile": ".red", "trevni": ".trv"} {
		for what, items := range map[string]int{" page": 20 << 20, " row": 4 << 20} {
			what = to + " long" + what
			place := filepath.Join(dir, what+ext)
			longRow(t, place, to, items)
			all[what] = hostilePlace{place, true}
		}
	}

	carbon := func(what, name string, b []byte) {
		place := filepath.Join(dir, what)
		carbonSample("managed_complex")(t, place)
		put(what, filepath.Join(what, "Metadata", name), true, b)
		all[what] = hostilePlace{place, true}
	}
	carbon("carbon columns", "schema", bytes.Join([][]byte{{0x1c}, s("\x18\x01x"), {0x19, 0xfc}, // fact_table
		binary.AppendUvarint(nil, 4*million), make([]byte, 4*million), {0, 0}}, nil))
	carbon("carbon segments", "tablestatus", append(append(s("[{}"), bytes.Repeat(s(",{}"), million)...), ']'))
	return all
}

// longRow writes a table of one row, a list of the given number of zeros, which take few bytes.
func longRow(t *testing.T, place, to string, items int) {
	list := arrow.ListOf(arrow.PrimitiveTypes.Int64)
	zeros := array.NewData(list.Elem(), items, []*memory.Buffer{nil, memory.NewBufferBytes(make([]byte, 8*items))}, nil,
		0, 0)
	ends := memory.NewBufferBytes(binary.LittleEndian.AppendUint32(make([]byte, 4), uint32(items)))
	row := array.MakeFromData(array.NewData(list, 1, []*memory.Buffer{nil, ends}, []arrow.ArrayData{zeros}, 0, 0))
	sc := arrow.NewSchema([]arrow.Field{{Name: "l", Type: list, Nullable: true}}, nil)
	w, err := stoa.Create(t.Context(), place, sc, stoa.CreateOptions{To: to, NoCheck: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), array.NewRecordBatch(sc, []arrow.Array{row}, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// zipped returns a compressed text with n times x in it.
func zipped(t *testing.T, before string, n int, after string) []byte {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(z, before)
	for x := bytes.Repeat([]byte("x"), 1<<20); n > 0; n -= len(x) {
		z.Write(x)
	}
	io.WriteString(z, after)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// container returns a protobuf container of version 1 with one record.
func container(typ string, body []byte) []byte {
	record := func(b []byte) []byte {
		b = append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
		return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	}
	super := append([]byte{0x12, byte(len(typ))}, typ...)
	return bytes.Join([][]byte{[]byte("kuducntr"), {1, 0, 0, 0}, record(super), record(body)}, nil)
}

// logSegment returns a segment of a Kudu log with a schema of the given columns, and one batch of the given entries.
func logSegment(columns, entries []byte) []byte {
	head := append(binary.AppendUvarint([]byte{0x2a, 1, 't', 0x30, 1, 0x3a}, uint64(len(columns))), columns...)
	out := append(binary.LittleEndian.AppendUint32([]byte("kudulogf"), uint32(len(head))), head...)
	if entries == nil {
		return out
	}
	table := crc32.MakeTable(crc32.Castagnoli)
	var batch []byte
	for _, n := range []uint32{uint32(len(entries)), uint32(len(entries)), crc32.Checksum(entries, table)} {
		batch = binary.LittleEndian.AppendUint32(batch, n)
	}
	batch = binary.LittleEndian.AppendUint32(batch, crc32.Checksum(batch, table))
	return append(append(out, batch...), entries...)
}

// sharedNames returns an Arrow stream whose fields share the bytes of one long name.
func sharedNames(name, fields int) []byte {
	b := flatbuffers.NewBuilder(name + 8*fields)
	text := b.CreateString(strings.Repeat("n", name))
	b.StartObject(0)
	null := b.EndObject()
	b.StartObject(7) // Field: name, nullable, type_type, type
	b.PrependUOffsetTSlot(0, text, 0)
	b.PrependByteSlot(2, 1, 0)
	b.PrependUOffsetTSlot(3, null, 0)
	field := b.EndObject()
	b.StartVector(4, fields, 4)
	for range fields {
		b.PrependUOffsetT(field)
	}
	list := b.EndVector(fields)
	b.StartObject(4) // Schema: endianness, fields
	b.PrependUOffsetTSlot(1, list, 0)
	schema := b.EndObject()
	b.StartObject(5) // Message: version, header_type, header
	b.PrependInt16Slot(0, 4, 0)
	b.PrependByteSlot(1, 1, 0)
	b.PrependUOffsetTSlot(2, schema, 0)
	b.Finish(b.EndObject())
	message := b.FinishedBytes()
	for len(message)%8 != 0 {
		message = append(message, 0)
	}
	head := binary.LittleEndian.AppendUint32([]byte{0xff, 0xff, 0xff, 0xff}, uint32(len(message)))
	return append(append(head, message...), 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0)
}

// zeroBodies returns an Arrow stream whose only batch has 512 MiB of zeros.
func zeroBodies(t *testing.T) []byte {
	const rows, columns = 8 << 20, 8
	data := array.NewData(arrow.PrimitiveTypes.Int64, rows, []*memory.Buffer{nil,
		memory.NewBufferBytes(make([]byte, 8*rows))}, nil, 0, 0)
	zeros := array.NewInt64Data(data)
	var list []arrow.Field
	var arrays []arrow.Array
	for i := range columns {
		list = append(list, arrow.Field{Name: fmt.Sprint(i), Type: arrow.PrimitiveTypes.Int64})
		arrays = append(arrays, zeros)
	}
	sc := arrow.NewSchema(list, nil)
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(sc), ipc.WithZstd())
	if err := w.Write(array.NewRecordBatch(sc, arrays, rows)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestPeakMemory: whatever a source declares, the peak memory of a command is bounded by its budget and the source's
// size: a constant for the program itself, twice the budget, as the collector lets garbage grow to the size of live
// memory, and some copies of the source.
func TestPeakMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	const budget, before, copies = 64 << 20, 128 << 20, 8
	places := hostilePlaces(t)
	for turn, what := range slices.Sorted(maps.Keys(places)) { // every other verb, in turn; STOA_LONG: all
		p, size := places[what], int64(0)
		filepath.Walk(p.place, func(_ string, i os.FileInfo, err error) error {
			if err == nil && !i.IsDir() {
				size += i.Size()
			}
			return err
		})
		verbs := []string{"cat -f jsonl", "count", "ls", "describe", "verify --deep", "recover -o OUT"}
		for i, verb := range verbs {
			if os.Getenv("STOA_LONG") == "" && (i+turn)%2 == 1 {
				continue
			}
			out := filepath.Join(t.TempDir(), "out.jsonl")
			args := strings.Fields(strings.ReplaceAll(verb, "OUT", out))
			args = append(args, "--memory", fmt.Sprint(budget, "B"), "--max-page", fmt.Sprint(budget, "B"), p.place)
			st, peak, text := peakOf(t, args)
			t.Logf("%s (%d bytes), %s: status %d, %d MiB: %.120s", what, size, verb, st, peak>>20, text)
			if limit := before + 2*budget + copies*size; peak > limit {
				t.Errorf("%s (%d bytes), %s: got %d MiB, want at most %d", what, size, verb, peak>>20, limit>>20)
			}
			// calls that read no values
			free := verb == "describe" || verb == "ls" && strings.Contains(what, "bodies") ||
				strings.Contains(what, " long ") && (verb == "ls" || verb == "count")
			if st != cli.StatusCannot && p.refused && !free {
				t.Errorf("%s, %s: got status %d, want %d: %.300s", what, verb, st, cli.StatusCannot, text)
			}
			if _, err := os.Stat(out); err == nil {
				t.Errorf("%s, %s: got an output, want none", what, verb)
			}
		}
	}
}

// peakOf runs the command in a process of its own, and returns its status, its peak memory in bytes, and the beginning
// of its output and messages.
func peakOf(t *testing.T, args []string) (status int, peak int64, text []byte) {
	file := filepath.Join(t.TempDir(), "peak")
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "STOA_PEAK="+file, "GOGC=100", "GOMEMLIMIT=off")
	out := &beginning{}
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	b, ferr := os.ReadFile(file)
	if ferr != nil {
		t.Fatal(err, ferr)
	}
	if _, err := fmt.Sscan(string(b), &peak); err != nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), peak << 10, out.b
}

// beginning is a writer that keeps the first bytes only.
type beginning struct{ b []byte }

func (w *beginning) Write(b []byte) (int, error) {
	w.b = append(w.b, b[:min(len(b), 300-len(w.b))]...)
	return len(b), nil
}

// asPeak is the process that peakOf runs. It reads its own peak, as the resource usage that wait returns to the parent
// may include the parent's memory.
func asPeak() {
	st := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	b, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := bytes.Cut(b, []byte("VmHWM:"))
	os.WriteFile(os.Getenv("STOA_PEAK"), bytes.TrimSpace(rest), 0o644)
	os.Exit(st)
}
