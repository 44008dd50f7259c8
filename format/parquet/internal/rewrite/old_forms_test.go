package rewrite

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/format/parquet/internal/file"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/page"
	"stoa/format/parquet/internal/read"
	"stoa/format/parquet/internal/verify"
	"stoa/format/parquet/internal/write"
	"stoa/internal/codec"
	"stoa/internal/dremel"
	"stoa/store"
)

// opened opens a file in memory.
func opened(t *testing.T, b []byte) *read.Reader {
	t.Helper()
	f, err := file.OpenConsistent(t.Context(), format.Target{Tree: store.NewMemory(map[string][]byte{"t": b}),
		Name: "t"}, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return read.NewReader(f, nil)
}

// plainPages returns a file of uncompressed pages of version 1, whose levels are in RLE: a flat column, and a list in a
// struct, which has three definition levels and one repetition level.
func plainPages(t *testing.T, rows int) []byte {
	item := arrow.ListOf(arrow.BinaryTypes.String)
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "st", Type: arrow.StructOf(arrow.Field{Name: "l", Type: item, Nullable: true}), Nullable: true},
	}, nil))
	rng := rand.New(rand.NewPCG(8, 8))
	st := b.Field(1).(*array.StructBuilder)
	l := st.FieldBuilder(0).(*array.ListBuilder)
	for i := range rows {
		if b.Field(0).(*array.Int64Builder).Append(int64(i)); i%7 == 0 {
			b.Field(0).AppendNull()
			st.AppendNull()
			st.AppendNull()
			b.Field(0).AppendNull()
			st.Append(true)
			l.AppendNull()
			continue
		}
		st.Append(true)
		l.Append(true)
		for range rng.IntN(5) {
			if v := l.ValueBuilder().(*array.StringBuilder); rng.IntN(4) == 0 {
				v.AppendNull()
			} else {
				v.Append(fmt.Sprint("item ", rng.IntN(30)))
			}
		}
	}
	var out bytes.Buffer
	w, err := write.NewWriter(&out, b.Schema(), map[string]string{"compression": "none", "page-index": "false",
		"page-rows": "70"})
	if err == nil {
		err = w.Write(b.NewRecordBatch())
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// oldForm returns a file of plainPages as old writers would have made it: with levels in BIT_PACKED, and in the old LZ4
// if lz4 is "framed", as by Hadoop's programs, or "bare", as by others.
func oldForm(t *testing.T, b []byte, packed bool, lz4 string) []byte {
	r := opened(t, b)
	footer, _, err := decode(b[r.FooterAt.Off:][:r.FooterAt.Len])
	if err != nil {
		t.Fatal(err)
	}
	out := []byte(meta.Magic)
	for g := range footer.at(4).items {
		group := &footer.at(4).items[g]
		group.drop(5, 6)
		all := 0
		for k := range group.at(1).items {
			c := &group.at(1).items[k]
			m := c.at(3)
			start, raw := len(out), 0
			for p, err := range r.Pages(t.Context(), g, k) {
				if err != nil {
					t.Fatal(err)
				}
				if p.IsData() && m.at(9).n == p.Header.Off {
					m.set(9, i64(int64(len(out))))
				}
				whole := b[p.Header.Off:][:p.Whole().Len]
				var size int
				out, size = appendOldPage(t, out, whole, &p, r.Leaves[k], packed, lz4)
				raw += size
			}
			if c.set(2, i64(0)); m.at(11) != nil {
				m.set(11, i64(int64(start)))
			}
			if lz4 != "" {
				m.set(4, i32(int64(meta.CodecLZ4)))
			}
			m.set(6, i64(int64(raw)))
			m.set(7, i64(int64(len(out)-start)))
			m.drop(10, 16)
			all += raw
		}
		group.set(2, i64(int64(all)))
	}
	footer.set(6, text("a writer of old"))
	pairs := footer.at(5)
	pairs.items = slices.DeleteFunc(pairs.items, func(p node) bool { return string(p.at(1).b) == meta.SealKey })
	end := footer.append(nil)
	out = binary.LittleEndian.AppendUint32(append(out, end...), uint32(len(end)))
	return append(out, meta.Magic...)
}

// appendOldPage appends a page in its old form, and returns its size before compression, with the header.
func appendOldPage(t *testing.T, out, whole []byte, p *meta.Page, c *page.FileColumn, packed bool, lz4 string) ([]byte,
	int) {
	head, used, err := decode(whole)
	if err != nil {
		t.Fatal(err)
	}
	body := whole[used:]
	if p.IsData() && packed {
		var levels []byte
		for _, most := range []int16{c.MaxRep, c.MaxDef} {
			if most > 0 {
				each, n := make([]byte, p.Values), binary.LittleEndian.Uint32(body)
				if err := dremel.DecodeLevels(each, body[4:][:n], uint8(most)); err != nil {
					t.Fatal(err)
				}
				levels, body = dremel.AppendPackedLevels(levels, each, uint8(most)), body[4+n:]
			}
		}
		body = append(levels, body...)
		head.at(5).set(3, i32(meta.BitPacked))
		head.at(5).set(4, i32(meta.BitPacked))
	}
	raw := len(body)
	z, _ := codec.ByName("lz4")
	switch lz4 {
	case "bare":
		body = z.Compress(nil, body)
	case "framed":
		block := z.Compress(nil, body)
		body = binary.BigEndian.AppendUint32(nil, uint32(raw))
		body = append(binary.BigEndian.AppendUint32(body, uint32(len(block))), block...)
	}
	head.set(2, i32(int64(raw)))
	head.set(3, i32(int64(len(body))))
	head.set(4, i32(int64(int32(crc32.ChecksumIEEE(body)))))
	b := head.append(nil)
	return append(append(out, b...), body...), len(b) + raw
}

// rowsOf returns the rows of a file as text.
func rowsOf(t *testing.T, r *read.Reader) (rows []string) {
	for g := range r.Footer.RowGroups {
		for b, err := range r.RowBatches(t.Context(), g, []int{0, 1}) {
			if err != nil {
				t.Fatal(err)
			}
			for i := range int(b.NumRows()) {
				rows = append(rows, b.Column(0).ValueStr(i)+" "+b.Column(1).ValueStr(i))
			}
		}
	}
	return rows
}

// TestOldFormsAreCut: pages with levels in BIT_PACKED, or in the old LZ4, are cut, and the resulting pages have the
// same form.
func TestOldFormsAreCut(t *testing.T) {
	b := plainPages(t, 1000)
	want := rowsOf(t, opened(t, b))
	for _, packed := range []bool{true, false} {
		for _, lz4 := range []string{"framed", "bare", ""} {
			name := fmt.Sprintf("packed %t, LZ4 %q", packed, lz4)
			old := opened(t, oldForm(t, b, packed, lz4))
			if !slices.Equal(rowsOf(t, old), want) {
				t.Fatalf("%s: got a different table in the file", name)
			}
			j, why, err := Plan(t.Context(), []*read.Reader{old}, format.CopyOptions{
				Opts: map[string]string{"row-group-rows": "83"}})
			if why != "" || err != nil {
				t.Fatalf("%s: %s, %v", name, why, err)
			}
			if j.Cut() < 10 {
				t.Errorf("%s: only %d pages are cut", name, j.Cut())
			}
			var out bytes.Buffer
			if err := j.Write(t.Context(), &out); err != nil {
				t.Fatal(name, err)
			}
			r := opened(t, out.Bytes())
			if !slices.Equal(rowsOf(t, r), want) {
				t.Errorf("%s: other rows", name)
			}
			for g := range r.Footer.RowGroups {
				for leaf := range r.Leaves {
					for _, f := range verify.CheckField(t.Context(), r, g, leaf, true) {
						t.Errorf("%s: %s: %s", name, f.Code, f.Message)
					}
					holdForm(t, name, r, out.Bytes(), g, leaf, packed, lz4)
				}
			}
		}
	}
}

// holdForm checks that all pages of a chunk have the same form as before.
func holdForm(t *testing.T, name string, r *read.Reader, b []byte, g, leaf int, packed bool, lz4 string) {
	for p, err := range r.Pages(t.Context(), g, leaf) {
		if err != nil {
			t.Fatal(name, err)
		}
		if p.IsData() && packed != (p.Levels[0] == meta.BitPacked) {
			t.Errorf("%s: levels in %s", name, meta.EnumName(meta.Encodings, p.Levels[0]))
		}
		body := b[p.Body.Off:p.Body.End()]
		if lz4 != "" && meta.Framed(body, p.Raw) != (lz4 == "framed") {
			t.Errorf("%s: a page is framed otherwise", name)
		}
	}
}
