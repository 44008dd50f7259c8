package trevni_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/format/trevni/internal/page"
	judge "stoa/interop/trevni"
)

// corpusDir returns the whole corpus if it is available, else the golden subset; both have everything that is tested
// here.
func corpusDir() string {
	if dir := os.Getenv("STOA_CORPUS"); dir != "" {
		return filepath.Join(dir, "trevni")
	}
	return golden
}

func corpusFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(corpusDir(), name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestImpala: the two worked examples have the same rows, once without a codec (and stored sizes of 0), once
// with zlib's deflate.
func TestImpala(t *testing.T) {
	var expect map[string][][]any
	d := json.NewDecoder(strings.NewReader(dialectRows(t)))
	d.UseNumber()
	if err := d.Decode(&expect); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"impala_none.trv", "impala_deflate_zlib.trv"} {
		r, cols, err := readAll(t.Context(), corpusFile(t, "dialects/"+name), format.OpenOptions{})
		if err != nil {
			t.Error(name, err)
			continue
		}
		want := expect["impala_*"]
		for i, row := range want {
			for c := range cols {
				if err := judge.Equal(judge.Core, r.Schema().Field(c), cols[c], i, row[c]); err != nil {
					t.Errorf("%s row %d: %v", name, i, err)
				}
			}
		}
		if cols[0].Len() != len(want) || len(cols) != 2 {
			t.Errorf("%s: %d rows of %d columns", name, cols[0].Len(), len(cols))
		}
		if got := r.Meta()[0].Value; got != "Trevni, dialect impala, version 1" {
			t.Error(got)
		}
	}
}

// dialectRows returns the rows in expect.json.
func dialectRows(t *testing.T) string {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(corpusFile(t, "dialects/expect.json"), &all); err != nil {
		t.Fatal(err)
	}
	return `{"impala_*":` + string(all["impala_*"]) + `}`
}

// TestWikiDremel: the Dremel paper's two documents. Levels and values are those of the paper; the documents are the
// input of Avro's writer.
func TestWikiDremel(t *testing.T) {
	data := corpusFile(t, "dialects/wiki_dremel.trv")
	r, cols, err := readAll(t.Context(), data, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range lines(t, filepath.Join(corpusDir(), "v1.12.2/avro_dremel.avro.jsonl")) {
		var row map[string]any
		parse(t, line, &row)
		for c, f := range r.Schema().Fields() {
			if err := judge.Equal(judge.Avro, f, cols[c], n, row[f.Name]); err != nil {
				t.Errorf("row %d column %s: %v", n, f.Name, err)
			}
		}
		n++
	}
	if n != 2 || len(cols) != 3 {
		t.Errorf("%d rows, %d columns", n, len(cols))
	}
	var expect map[string]any
	parse(t, corpusFile(t, "dialects/expect.json"), &expect)
	want := expect["wiki_dremel"].(map[string]any)
	groups, _ := r.RowGroups(t.Context(), format.Part{}, format.Query{})
	for i, c := range r.Columns() {
		in, err := decodeColumn(t.Context(), r, groups[0], i, nil, data)
		if err != nil {
			t.Fatal(err)
		}
		var got []any
		for k := range in.Array.Len() {
			var def, rep byte
			if in.Def != nil {
				def, rep = in.Def[k], in.Rep[k]
			}
			v := "null"
			if !in.Array.IsNull(k) {
				v = judge.Text(in.Array, k)
			}
			got = append(got, fmt.Sprint(rep, def, v))
		}
		var exp []any
		for _, e := range want[c.Name].([]any) {
			e := e.([]any)
			v := "null"
			if e[2] != nil {
				v = judge.Wanted(judge.Core, in.Array, e[2])
			}
			exp = append(exp, fmt.Sprint(e[0], " ", e[1], v))
		}
		g, w := strings.ReplaceAll(fmt.Sprint(got...), " ", ""), strings.ReplaceAll(fmt.Sprint(exp...), " ", "")
		if g != w {
			t.Errorf("%s: %s, want %s", c.Name, g, w)
		}
	}
	if len(want) != len(r.Columns()) {
		t.Errorf("%d columns, want %d", len(r.Columns()), len(want))
	}
}

// TestIntegerArray: 96 vectors from Impala's own class, packed and unpacked.
func TestIntegerArray(t *testing.T) {
	n := 0
	for line := range lines(t, filepath.Join(corpusDir(), "impala_integer_array.jsonl")) {
		var v struct {
			Bits   int
			Values []int
			Hex    string
		}
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		n++
		want, _ := hex.DecodeString(v.Hex)
		levels := make([]uint32, len(v.Values))
		for i, x := range v.Values {
			levels[i] = uint32(x)
		}
		if got := page.PackLevels(nil, levels, v.Bits); string(got) != string(want) {
			t.Errorf("%d bits, %v: %x, want %x", v.Bits, v.Values, got, want)
		}
		got := make([]uint32, len(levels))
		if page.UnpackLevels(got, want, v.Bits); !slices.Equal(got, levels) {
			t.Errorf("%d bits, %x: %v, want %v", v.Bits, want, got, levels)
		}
	}
	if n != 96 {
		t.Errorf("%d vectors, there are 96", n)
	}
}

// TestNegative: files that contradict the format, each with the required result: the right values, or an error at its
// place.
func TestNegative(t *testing.T) {
	right := map[string]string{ // values as Avro's reader has them, or as the notes on its bugs do
		"magic_0": "0 1 2 3 4", "magic_1": "0 1 2 3 4", "magic_2": "0 1 2 3 4", "trail": "0 1 2 3 4",
		"right_big_endian_null_codec": "5 -5 70",
		"right_little_endian":         "5 -5 70", "crc_before_data": "5 -5 70", "zero_": "5 -5 70",
		"sum_spelled_crc_minus_32": "5 -5 70", "gap": "5 -5 70",
		"wrong_raw_size": "5 -5 70", "two_blocks_empty": "5 -5 70", "type_INT": "5 -5 70", "type_Int": "5 -5 70",
		"negmeta": "", "dup": "", "swapped": "1 2 3", "zlib": "5 -5 70",
	}
	wrong := map[string]string{ // a part of the error message
		"magic_3": "[3+1]: unsupported: header.magic", "magic_255": "[3+1]: unsupported: header.magic",
		"magic_PAR1": "[0+4]: corrupt: header.magic",
		"trunc_0":    "f.trv: corrupt: header.magic", "trunc_3": "[0+3]: corrupt: header.magic",
		"trunc_4": "[4+0]: corrupt: header.row-count", "trunc_11": "[4+7]: corrupt: header.row-count",
		"trunc_15":      "[12+3]: corrupt: header.column-count",
		"trunc_16":      "[16+0]: corrupt: header.file-metadata.meta-count",
		"trunc_40":      "[12+4]: corrupt: header.column-count: 2 columns",
		"trunc_167":     "corrupt: descriptor[0]: the block would lie at",
		"badutf8":       "corrupt: column[0].block[0]: value 0 is not UTF-8",
		"child_first":   "corrupt: column-metadata[0].parent",
		"codec_unknown": "unsupported: column[0].block[0]/codec", "hugeblocks": "corrupt: column[0].block-count",
		"hugecols":      "[12+4]: corrupt: header.column-count",
		"hugestored":    "corrupt: descriptor[0]: the block would lie at",
		"int64_in_int":  "corrupt: column[0].block[0]",
		"neglen":        "corrupt: column[0].block[0]: value 0 has a length of -1",
		"nokeys":        "corrupt: column-metadata[0].name",
		"rowcount_more": "[4+8]: corrupt: header.row-count: 7, no column has as many",
		// Avro's reader does not look beyond the last value; here the extra bytes reveal a wrong row count.
		"overlong":     "corrupt: column[0].block[0]: 7 bytes are after",
		"type_BYTES":   "corrupt: column[0].block[0]",
		"type_boolean": "corrupt: column[0].block[0]: 3 bytes are after",
		"type_uint":    "unsupported: column-metadata[0].type", "arr_false": "corrupt: column[0].block[0]",
	}
	files, err := filepath.Glob(filepath.Join(corpusDir(), "negative", "*.trv"))
	if err != nil || len(files) != 44 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".trv")
		data := corpusFile(t, "negative/"+name+".trv")
		_, cols, err := readAll(t.Context(), data, format.OpenOptions{})
		want, isRight := right[name]
		part, isWrong := wrong[name]
		switch {
		case !isRight && !isWrong:
			t.Errorf("%s: nothing is expected; it gave %v, %v", name, cols, err)
		case isWrong && err == nil:
			t.Errorf("%s: no error, but %v", name, cols)
		case isWrong:
			var e *fault.Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %s", name, err, part)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case len(cols) > 0:
			var got []string
			for i := range cols[0].Len() {
				got = append(got, judge.Text(cols[0], i))
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: %s, want %s", name, strings.Join(got, " "), want)
			}
		}
	}
}
