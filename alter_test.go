package stoa

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
)

// alteringOption is an option with which a writer changes values.
type alteringOption struct {
	format, option string
	more           string           // another option
	values         map[string]int64 // how many values of each column of alteredRows are changed
	unknown        []string         // columns that cannot be checked, since what is read instead is unknown
}

var altering = []alteringOption{
	{"cfile", "coerce=us", "", map[string]int64{"ns": 3, "list": 1}, nil},
	{"cfile", "coerce=floor", "", map[string]int64{"ns": 3, "list": 1}, nil},
	{"carbon", "timestamps=truncate", "", map[string]int64{"ns": 4, "list": 2, "us": 2}, nil},
	{"carbon", "timestamps=truncate", "version=2", map[string]int64{"ns": 4, "us": 3, "ms": 1}, nil},
	{"carbon", "timestamps=truncate", "version=1", map[string]int64{"ns": 4, "us": 3, "ms": 1}, nil},
	{"carbon", "nulls=merge", "", map[string]int64{"texts": 2}, []string{"texts"}},
}

// alteredRows returns five rows; times are after 1970, as CarbonData's formats 1 and 2 require.
func alteredRows(t *testing.T, names ...string) arrow.RecordBatch {
	t.Helper()
	ns := &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}
	fields := []arrow.Field{{Name: "ns", Type: ns}, {Name: "list", Type: arrow.ListOf(ns)},
		{Name: "us", Type: arrow.FixedWidthTypes.Timestamp_us}, {Name: "ms", Type: arrow.FixedWidthTypes.Timestamp_ms},
		{Name: "texts", Type: arrow.ListOf(arrow.BinaryTypes.String)}}
	fields = slices.DeleteFunc(fields, func(f arrow.Field) bool { return !slices.Contains(names, f.Name) })
	for i := range fields {
		fields[i].Nullable = true
	}
	const a, b, c = `"2020-01-01T00:00:00.000000999Z"`, `"2020-01-01T00:00:00.000001Z"`, `"2020-01-01T00:00:01Z"`
	rows, _, err := array.RecordFromJSON(memory.DefaultAllocator, arrow.NewSchema(fields, nil), strings.NewReader(`[
		{"ns":`+a+`,"list":[`+a+`,`+c+`,`+a+`],"us":`+b+`,"ms":"2020-01-01T00:00:00.5Z","texts":[null]},
		{"ns":`+b+`,"list":[`+b+`],"us":`+b+`,"ms":`+c+`,"texts":["a"]},
		{"ns":`+a+`,"list":[null,`+c+`],"us":"2020-01-01T00:00:00.123Z","ms":`+c+`,"texts":[null,null]},
		{"ns":"2020-01-01T00:00:01.5000005Z","list":[],"us":`+c+`,"ms":`+c+`,"texts":[null]},
		{"ns":null,"list":null,"us":null,"ms":null,"texts":null}]`))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestAltered: every writer with an option that changes values reports the columns and the number of changed values,
// even without a check; the check compares the changed timestamps.
func TestAltered(t *testing.T) {
	for _, x := range altering {
		names := []string{"ns", "list", "us", "ms"}
		if x.unknown != nil {
			names = []string{"texts"}
		} else if x.more != "" {
			names = []string{"ns", "us", "ms"}
		}
		rows := alteredRows(t, names...)
		opts := map[string]string{}
		for _, o := range []string{x.option, x.more} {
			if k, v, ok := strings.Cut(o, "="); ok {
				opts[k] = v
			}
		}
		f := formatNamed(t, x.format)
		write := func(change func(arrow.RecordBatch) arrow.RecordBatch, noCheck bool) (format.Summary, error) {
			f := f
			if change != nil {
				f = alteringRows(f, func(b arrow.RecordBatch) arrow.RecordBatch { return change(b) })
			}
			out := filepath.Join(t.TempDir(), "out") + ext(&f)
			s, err := written(t.Context(), out, rows, CreateOptions{Formats: []format.Format{f},
				To: f.Name, Opts: opts, NoCheck: noCheck})
			if err == nil {
				sound(t, out, f.Name)
			}
			return s, err
		}
		for _, noCheck := range []bool{false, true} {
			s, err := write(nil, noCheck)
			if err != nil {
				t.Errorf("%s, %s %s: %v", x.format, x.option, x.more, err)
				continue
			}
			got := map[string]int64{}
			for _, a := range s.ByOption {
				if a.Option != x.option {
					t.Errorf("expected values changed by %s, got %s", x.option, a.Option)
				}
				got[a.Column] = a.Values
			}
			for _, name := range names {
				if got[name] != x.values[name] {
					t.Errorf("%s, %s %s: %d values of %s changed, want %d", x.format, x.option, x.more, got[name], name,
						x.values[name])
				}
			}
			if !noCheck && (!s.Checked || !slices.Equal(s.Unchecked, x.unknown)) {
				t.Errorf("%s, %s %s: checked %v, except columns %v", x.format, x.option, x.more, s.Checked, s.Unchecked)
			}
		}
		if x.unknown != nil {
			continue
		}
		_, err := write(func(b arrow.RecordBatch) arrow.RecordBatch { // one row has another row's timestamp
			cols := slices.Clone(b.Columns())
			n := b.NumRows()
			first, rest := array.NewSlice(cols[0], n-2, n-1), array.NewSlice(cols[0], 1, n)
			moved, err := array.Concatenate([]arrow.Array{first, rest}, memory.DefaultAllocator)
			if err != nil {
				t.Fatal(err)
			}
			cols[0] = moved
			return array.NewRecordBatch(b.Schema(), cols, n)
		}, false)
		if e := (*UnprovenError)(nil); !errors.As(err, &e) || !slices.Equal(e.Columns, []string{"ns"}) {
			t.Errorf("%s, %s %s: a wrong timestamp: got %v, want an UnprovenError for ns", x.format, x.option, x.more,
				err)
		}
	}
	for _, f := range provable { // every such option is tested
		for _, k := range f.WriteKeys {
			changes := slices.Contains([]string{"coerce", "timestamps", "nulls"}, k.Name)
			tried := slices.ContainsFunc(altering, func(x alteringOption) bool {
				return x.format == f.Name && strings.HasPrefix(x.option, k.Name+"=")
			})
			if changes && (!tried || f.Alters == nil) {
				t.Errorf("%s: option %s is not tested, or the format has no Alters", f.Name, k.Name)
			}
		}
	}
}

func formatNamed(t *testing.T, name string) format.Format {
	t.Helper()
	i := slices.IndexFunc(provable, func(f format.Format) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("unknown format %s", name)
	}
	return provable[i]
}
