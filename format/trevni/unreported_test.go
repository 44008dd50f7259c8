package trevni_test

import (
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/format/trevni"
	"stoa/internal/scan"
	"stoa/region"
	"stoa/store"
)

// errorsOf returns the number of errors that verify reports about a file at depth format.Sums.
func errorsOf(t *testing.T, data []byte) (n int) {
	t.Helper()
	_, all := findingsAt(t, data, format.Sums)
	for _, f := range all {
		if f.Severity == region.Error {
			n++
		}
	}
	return n
}

// recovered returns the rows that recovery returns from a file, with null in place of lost cells. reported states
// whether it reported an error or a loss.
func recovered(t *testing.T, data []byte) (rows string, reported bool, err error) {
	t.Helper()
	tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f.trv": data}), Name: "f.trv"}
	r, found, err := trevni.Format.Recover(t.Context(), tg, format.OpenOptions{})
	if err != nil {
		return "", true, err
	}
	r.Close()
	for _, f := range found {
		reported = reported || f.Severity == region.Error
	}
	rows, err = scanAll(t.Context(), data,
		scan.Spec{Damaged: scan.NullCells, Lost: func(region.Loss) { reported = true }}, true)
	return rows, reported, err
}

// TestFlipsInSealedFiles: in a file of our writer, no changed bit goes unreported: verify has an error, and recovery
// reports something or returns all rows unchanged.
func TestFlipsInSealedFiles(t *testing.T) {
	for name, data := range samples(t) {
		right, err := scanAll(t.Context(), data, scan.Spec{}, false)
		if err != nil {
			t.Fatal(err)
		}
		if errorsOf(t, data) > 0 {
			t.Errorf("%s: the whole file has errors", name)
		}
		r := rand.New(rand.NewPCG(1, uint64(len(data))))
		for at := range data {
			if testing.Short() && at%23 > 0 {
				continue
			}
			bad := slices.Clone(data)
			bad[at] ^= 1 << r.IntN(8)
			if errorsOf(t, bad) == 0 { // some bits of a deflated block are unused
				if got, err := scanAll(t.Context(), bad, scan.Spec{}, false); err != nil || got != right {
					t.Errorf("%s byte %d: verify finds nothing: %v", name, at, err)
				}
			}
			if got, reported, err := recovered(t, bad); err == nil && !reported && got != right {
				t.Errorf("%s byte %d: recovery gives other rows and reports nothing", name, at)
			}
		}
	}
}

// numbersFile returns a file of numbers without any checksums. All values have the same size, so any bytes can be
// decoded as values.
func numbersFile(t *testing.T, f *format.Format, rows int) []byte {
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Float64},
		{Name: "b", Type: arrow.PrimitiveTypes.Float32}, {Name: "c", Type: arrow.PrimitiveTypes.Float64}}, nil)
	return unsealed(write(t, *f, sc, map[string]string{"checksum": "null", "block-size": "200"},
		flatBatch(t, sc, rows)).Bytes("t"))
}

// TestRecoverInserted: inserted, removed or repeated bytes shift everything after them. Every cell that recovery
// returns is the original one, and it reports every repair.
func TestRecoverInserted(t *testing.T) {
	for _, f := range []*format.Format{&trevni.Format, &trevni.AvroFormat} {
		data := numbersFile(t, f, 100)
		want := cells(t, data, false)
		head := int(binary.LittleEndian.Uint64(data[startsOf(t, data)[0]:]))
		saved, lost := 0, 0
		after := int(binary.LittleEndian.Uint64(data[startsOf(t, data)[2]:]))
		for seed := range uint64(600) {
			r := rand.New(rand.NewPCG(seed, 17))
			at, n := head+r.IntN(len(data)-head), 1+r.IntN(100)
			bad := slices.Clone(data)
			switch seed % 3 {
			case 0:
				bad = slices.Insert(bad, at, make([]byte, n)...)
			case 1:
				bad = slices.Insert(bad, at, data[max(head, at-n):at]...)
			default:
				bad = slices.Delete(bad, at, min(at+n, len(bad)))
			}
			if string(bad) == string(data) {
				continue
			}
			// a change in the last column shifts no other column: bytes inside it cannot be distinguished from bytes
			// after it, or from a cut
			if at >= after {
				continue
			}
			if _, reported, _ := recovered(t, bad); !reported {
				t.Errorf("%s, seed %d: %d bytes at %d of %d, and nothing is reported", f.Name, seed,
					len(bad)-len(data), at, len(data))
			}
			got := cells(t, bad, true)
			for c := range got {
				for i, v := range got[c] {
					switch {
					case v == nil:
						lost++
					case i >= len(want[c]) || *v != *want[c][i]:
						t.Fatalf("%s, seed %d (%d bytes at %d): column %d row %d is another", f.Name, seed,
							len(bad)-len(data), at, c, i)
					default:
						saved++
					}
				}
			}
		}
		if saved == 0 || lost == 0 {
			t.Errorf("%s: %d cells saved, %d lost", f.Name, saved, lost)
		}
	}
}

// cells returns the numbers in a file's columns; nil = lost.
func cells(t *testing.T, data []byte, recovering bool) (out [][]*float64) {
	t.Helper()
	text, err := scanAll(t.Context(), data, scan.Spec{Damaged: scan.NullCells}, recovering)
	if err != nil {
		return nil
	}
	for dec := json.NewDecoder(strings.NewReader(text)); dec.More(); {
		var c []*float64
		if err := dec.Decode(&c); err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

// TestHeaderContradicts: if the number of columns, the schema, and the columns' own metadata contradict each other,
// reading, verify, recovery and listing all report an error. In a file without a checksum over its header, nothing else
// shows the damage.
func TestHeaderContradicts(t *testing.T) {
	java := corpusFile(t, "v1.12.2/avro_unions.trv")
	nested := corpusFile(t, "v1.12.2/all_absent_absent.trv")
	files := map[string][]byte{"unions": java, "plain": nested}
	for name, data := range samples(t) {
		files[name] = unsealed(data)
	}
	for name, data := range files {
		none := slices.Clone(data)
		clear(none[12:16]) // no columns
		contradicted(t, name+", no columns", none)
		for _, key := range []string{"avro.schema", "stoa.schema", "trevni.array", "trevni.parent"} {
			for i := strings.Index(string(data), key); i >= 0 && i < len(data); {
				for k := range key {
					if testing.Short() && k%4 > 0 {
						continue
					}
					bad := slices.Clone(data)
					bad[i+k] ^= 2
					contradicted(t, name+", key "+key, bad)
					bad[i+(k+3)%len(key)] ^= 4
					contradicted(t, name+", two bytes of the key "+key, bad)
				}
				next := strings.Index(string(data[i+1:]), key)
				if next < 0 || key[0] == 't' && i > 2000 {
					break
				}
				i += 1 + next
			}
		}
	}
}

// contradicted fails the test if a verb reports no error about a file.
func contradicted(t *testing.T, what string, data []byte) {
	t.Helper()
	tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f.trv": data}), Name: "f.trv"}
	if errorsOf(t, data) == 0 {
		t.Errorf("%s: verify finds nothing", what)
	}
	if r, err := trevni.Format.Open(t.Context(), tg, format.OpenOptions{}); err == nil {
		if !anyError(r.(format.Finder).Findings()) {
			t.Errorf("%s: reading reports nothing", what)
		}
		r.Close()
	}
	if rows, err := scanAll(t.Context(), data, scan.Spec{}, false); err == nil {
		t.Errorf("%s: who wants to read up to the first damage gets %d bytes of rows", what, len(rows))
	}
	for e, err := range trevni.Format.List(t.Context(), tg) {
		if err == nil && !anyError(e.Findings) {
			t.Errorf("%s: listing reports nothing", what)
		}
	}
	if _, reported, err := recovered(t, data); err == nil && !reported {
		t.Errorf("%s: recovery reports nothing", what)
	}
}

func anyError(found []region.Finding) bool {
	return slices.ContainsFunc(found, func(f region.Finding) bool { return f.Severity == region.Error && f.Lost != 0 })
}

// TestOnlyRows: a file without columns has only a number of rows; it is reported that no checksum covers it.
func TestOnlyRows(t *testing.T) {
	data := []byte("Trv\x02\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f.trv": data}), Name: "f.trv"}
	if why, err := trevni.Format.Unchecked(t.Context(), tg, format.OpenOptions{}); why == "" || err != nil {
		t.Errorf("%q, %v", why, err)
	}
	if n, err := scanAll(t.Context(), data, scan.Spec{}, false); err != nil {
		t.Errorf("%q, %v", n, err)
	}
}

// TestPadding: zeros after the last column are not damage, and neither verify nor recovery reports them. They are not
// mistaken for checksums, however many there are.
func TestPadding(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Float64}}, nil)
	for _, rows := range []int{5, 100} {
		whole := unsealed(write(t, trevni.Format, sc, map[string]string{"checksum": "null", "block-size": "200"},
			flatBatch(t, sc, rows)).Bytes("t"))
		for n := range 60 {
			bad := append(whole[:len(whole):len(whole)], make([]byte, n)...)
			right, err := scanAll(t.Context(), bad, scan.Spec{}, false)
			got, reported, failed := recovered(t, bad)
			if err != nil || failed != nil || errorsOf(t, bad) > 0 || reported || got != right {
				t.Errorf("%d rows, %d zeros: %v, %v, reported %t, other rows %t", rows, n, err, failed, reported,
					got != right)
			}
		}
	}
}

// TestSchemaLostInPlace: if the key of an Avro schema, the schema, or both are overwritten, and columns have names that
// only a schema can imply, verify reports it.
func TestSchemaLostInPlace(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.StructOf(
		arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int64},
		arrow.Field{Name: "y", Type: arrow.BinaryTypes.String})}}, nil)
	whole := unsealed(write(t, trevni.AvroFormat, sc, map[string]string{"arrow-schema": "false"},
		flatBatch(t, sc, 20)).Bytes("t"))
	if errorsOf(t, whole) > 0 {
		t.Fatal("the whole file has errors")
	}
	for _, key := range []string{`avme":chema`, "XXXXXXXXXXX", "avro.schema"} {
		for _, text := range []string{`"naro.s"`, `"fields"`} { // of the same size
			bad := strings.Replace(strings.Replace(string(whole), "avro.schema", key, 1), `"fields"`, text, 1)
			if bad != string(whole) && errorsOf(t, []byte(bad)) == 0 {
				t.Errorf("key %q, %s: nothing is reported", key, text)
			}
		}
	}
}

// TestSchemaUnderAnotherKey: a schema whose key is no longer recognized is reported as missing, for every kind of
// schema.
func TestSchemaUnderAnotherKey(t *testing.T) {
	for _, name := range []string{"array", "enum", "int", "map", "union"} {
		data := corpusFile(t, "v1.12.2/avro_top_"+name+".trv")
		i := strings.Index(string(data), "avro.schema")
		if i < 0 {
			t.Fatalf("%s: no schema", name)
		}
		copy(data[i+4:], "\x16avrom")
		contradicted(t, name, data)
	}
}
