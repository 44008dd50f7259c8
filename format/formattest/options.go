package formattest

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"stoa/format/option"
)

// Options checks a table of options against its struct: fields and options correspond one to one, the zero value yields
// no options, and random values survive conversion to strings and back.
func Options[S any](t *testing.T, table *option.Table[S]) {
	t.Helper()
	var zero S
	if opts := table.Strings(&zero); opts != nil {
		t.Errorf("%T: the zero value: got options %v, want none", zero, opts)
	}
	if s, err := table.Parse(nil); err != nil || !reflect.DeepEqual(s, zero) {
		t.Errorf("%T: no options: got %v, %v, want the zero value", zero, s, err)
	}
	for _, opts := range []map[string]string{{"no-such-option": "1"}, {"": ""}, {table.Options[0].Name + ".": "1"}} {
		if _, err := table.Parse(opts); err == nil {
			t.Errorf("%T: %v: got no error, want one", zero, opts)
		}
	}
	o := &optionLaw[S]{table: table, rand: rand.New(rand.NewPCG(1, 18)), values: map[int][]reflect.Value{}}
	o.fields(t)
	o.roundTrips(t)
}

// optionLaw compares one table with its struct.
type optionLaw[S any] struct {
	table  *option.Table[S]
	rand   *rand.Rand
	values map[int][]reflect.Value // of the field of each option: those that can be strings
}

// leaves calls do with each field of a struct, and of the structs in it. Maps are left out: they hold the values of
// other fields by column.
func leaves(v reflect.Value, name string, do func(name string, v reflect.Value)) {
	for i := range v.NumField() {
		f, at := v.Field(i), strings.TrimPrefix(name+"."+v.Type().Field(i).Name, ".")
		switch f.Kind() {
		case reflect.Struct:
			leaves(f, at, do)
		case reflect.Map:
		default:
			do(at, f)
		}
	}
}

func (l *optionLaw[S]) fields(t *testing.T) {
	t.Helper()
	var s S
	named := map[string]int{}
	leaves(reflect.ValueOf(&s).Elem(), "", func(name string, v reflect.Value) {
		named[name] = 0
		for i := range l.table.Options {
			if l.table.Options[i].Field(&s) == v.Addr().Interface() {
				named[name]++
				l.candidates(t, i, name)
			}
		}
	})
	options := 0
	for name, n := range named {
		if options += n; n != 1 {
			t.Errorf("%T: field %s belongs to %d options, want 1", s, name, n)
		}
	}
	if options != len(l.table.Options) {
		t.Errorf("%T: %d of %d options have a field", s, options, len(l.table.Options))
	}
}

// candidates draws values of the field of option i, and checks that each becomes that option alone.
func (l *optionLaw[S]) candidates(t *testing.T, i int, name string) {
	t.Helper()
	x := &l.table.Options[i]
	for range 60 {
		var s S
		v := reflect.ValueOf(x.Field(&s)).Elem()
		l.fill(v, x.Values)
		opts := l.table.Strings(&s)
		back, err := l.table.Parse(opts)
		if err != nil || v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0 {
			continue
		}
		if _, ok := opts[x.Name]; !ok || len(opts) != 1 || !reflect.DeepEqual(back, s) {
			t.Fatalf("%T: %s = %#v: got options %q, parsed %+v", s, name, v.Interface(), opts, back)
		}
		l.values[i] = append(l.values[i], v)
	}
	if len(l.values[i]) == 0 {
		t.Errorf("option %s: no value of %s found", x.Name, name)
	}
}

// fill sets v to a random value; words is the option's list of values.
func (l *optionLaw[S]) fill(v reflect.Value, words string) {
	texts := []string{"a1", "b c", `d"e`, "f,g", " h", `"i"`, "j.k", "ü", "l:m", "1", "2026-01-02T03:04:05Z",
		"2026-01-02 03:04:05", "UTC", "INT32"}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(l.rand.IntN(2) == 1)
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
		n := []int64{-1, 1, 2, 7, 100, 999, 4096, 1 << 20}[l.rand.IntN(8)]
		v.Set(reflect.ValueOf(n).Convert(v.Type()))
	case reflect.Uint8:
		v.SetUint(uint64([]byte(",;|\t:x")[l.rand.IntN(6)]))
	case reflect.String:
		all := append(strings.Split(words, ", "), texts...)
		v.SetString(all[l.rand.IntN(len(all))])
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		l.fill(v.Elem(), words)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+l.rand.IntN(3), 3))
		for i := range v.Len() {
			l.fill(v.Index(i), words)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			l.fill(v.Field(i), words)
		}
	default:
		panic("an option of type " + v.Type().String())
	}
}

// random returns a struct in which some options have a value.
func (l *optionLaw[S]) random() (s S) {
	for i, all := range l.values {
		if len(all) > 0 && l.rand.IntN(2) == 1 {
			reflect.ValueOf(l.table.Options[i].Field(&s)).Elem().Set(all[l.rand.IntN(len(all))])
		}
	}
	return s
}

func (l *optionLaw[S]) roundTrips(t *testing.T) {
	t.Helper()
	trips := 0
	for range 300 {
		s := l.random()
		v := reflect.ValueOf(&s).Elem()
		for i := range v.NumField() {
			if m := v.Field(i); m.Kind() == reflect.Map { // values for single columns
				l.columns(m)
			}
		}
		if l.table.Check != nil && l.table.Check(&s) != nil {
			continue
		}
		opts := l.table.Strings(&s)
		back, err := l.table.Parse(opts)
		if err != nil || !reflect.DeepEqual(back, s) {
			t.Fatalf("%+v: options %q: got %+v, %v", s, opts, back, err)
		}
		trips++
	}
	if trips < 30 {
		t.Errorf("%d of 300 random values passed the table's check, want 30 or more", trips)
	}
}

// columns fills the map m with values for single columns: those that random structs have for all columns.
func (l *optionLaw[S]) columns(m reflect.Value) {
	for _, name := range []string{"x", "y.z", "ü,"}[:l.rand.IntN(4)] {
		other := l.random()
		leaf := reflect.ValueOf(&other).Elem()
		for i := range leaf.NumField() {
			if leaf.Field(i).Type() == m.Type().Elem() && !leaf.Field(i).IsZero() {
				if m.IsNil() {
					m.Set(reflect.MakeMap(m.Type()))
				}
				m.SetMapIndex(reflect.ValueOf(name), leaf.Field(i))
			}
		}
	}
}
