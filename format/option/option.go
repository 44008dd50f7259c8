// Package option makes the options of a format one table: from it come what is parsed of --opt KEY=VALUE, the keys
// that help and docs list, the error for a key that there is not, and the strings that a struct of options stands for.
//
// A format has a struct, the zero value of which is the default of each option, and a Table of it with one Option a
// field:
//
//	type WriteOptions struct {
//		Codec Codec // "" is Null
//		NoCRC bool
//	}
//
//	var writing = option.Table[WriteOptions]{Format: "toy", For: "writing", Options: []option.Option[WriteOptions]{
//		option.Pick("codec", "compression of blocks (default null)",
//			func(o *WriteOptions) *Codec { return &o.Codec }, Null, Snappy),
//		option.Not("crc", "checksums of pages (default true)", func(o *WriteOptions) *bool { return &o.NoCRC }),
//	}}
package option

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format"
)

// Table is the options of a format for one purpose, of which S is the struct.
type Table[S any] struct {
	Format  string // whose they are, for errors
	For     string // "reading" or "writing"
	Options []Option[S]
	// Check refuses what does not go together; nil: everything does.
	Check func(o *S) error
}

// Option is one option of S.
type Option[S any] struct {
	format.OptionKey
	field func(*S) any // points to the field, which is how a test finds it
	// set takes a value; for NAME.COLUMN column is what follows the point. wanted: what would be a value.
	set     func(o *S, column, v string) (wanted string)
	get     func(o *S, column string) (v string, given bool)
	columns func(o *S) []string // those that have a value of their own; nil: there are no such options
}

// Field points to the field of o that the option is about; of options of columns, to that for all columns.
func (x *Option[S]) Field(o *S) any { return x.field(o) }

// Keys are the options for help and docs, as format.Format.ReadKeys and WriteKeys have them.
func (t *Table[S]) Keys() []format.OptionKey {
	out := make([]format.OptionKey, len(t.Options))
	for i := range t.Options {
		out[i] = t.Options[i].OptionKey
	}
	return out
}

// Parse is the struct that strings stand for. A key that there is not, and a value that is none, are Invalid.
func (t *Table[S]) Parse(opts map[string]string) (o S, err error) {
	for _, key := range slices.Sorted(maps.Keys(opts)) {
		if err := t.set(&o, key, opts[key]); err != nil {
			return o, err
		}
	}
	if t.Check != nil {
		err = t.Check(&o)
	}
	return o, err
}

func (t *Table[S]) set(o *S, key, v string) error {
	name, column, one := strings.Cut(key, ".")
	for i := range t.Options {
		x := &t.Options[i]
		if x.Name != name || one && (x.columns == nil || column == "") {
			continue
		}
		if wanted := x.set(o, column, v); wanted != "" {
			return fault.Invalidf("%s: option %s=%s: %s is wanted", t.Format, key, v, wanted)
		}
		return nil
	}
	return fault.Invalidf("%s: there is no option %q for %s", t.Format, key, t.For)
}

// Strings are the options of o that are not the default, such that Parse makes o of them; nil: there are none.
func (t *Table[S]) Strings(o *S) map[string]string {
	var out map[string]string
	add := func(key string, x *Option[S], column string) {
		if v, given := x.get(o, column); given {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = v
		}
	}
	for i := range t.Options {
		x := &t.Options[i]
		add(x.Name, x, "")
		if x.columns != nil {
			for _, column := range x.columns(o) {
				add(x.Name+"."+column, x, column)
			}
		}
	}
	return out
}

// Custom is an option with a form of its own. set says what would be a value if v is none; get gives false for the
// default.
func Custom[S, F any](key format.OptionKey, at func(*S) *F, set func(f *F, v string) (wanted string),
	get func(f *F) (v string, given bool)) Option[S] {
	return Option[S]{OptionKey: key, field: func(o *S) any { return at(o) },
		set: func(o *S, _, v string) string { return set(at(o), v) },
		get: func(o *S, _ string) (string, bool) { return get(at(o)) }}
}

func setBool(v string, not bool, to *bool) (wanted string) {
	if v != "true" && v != "false" {
		return "true or false"
	}
	*to = (v == "true") != not
	return ""
}

// Bool is an option that is false unless it is given.
func Bool[S any](name, help string, at func(*S) *bool) Option[S] { return flag(name, help, at, false) }

// Not is an option that is true unless it is given: its field is the opposite.
func Not[S any](name, help string, at func(*S) *bool) Option[S] { return flag(name, help, at, true) }

func flag[S any](name, help string, at func(*S) *bool, not bool) Option[S] {
	return Custom(format.OptionKey{Name: name, Values: "true, false", Help: help}, at,
		func(f *bool, v string) string { return setBool(v, not, f) },
		func(f *bool) (string, bool) { return strconv.FormatBool(*f != not), *f })
}

// Tri is an option that is true, false or, nil, neither.
func Tri[S any](name, help string, at func(*S) **bool) Option[S] {
	return Custom(format.OptionKey{Name: name, Values: "true, false", Help: help}, at,
		func(f **bool, v string) string { *f = new(bool); return setBool(v, false, *f) },
		func(f **bool) (string, bool) {
			if *f == nil {
				return "", false
			}
			return strconv.FormatBool(**f), true
		})
}

// Pick is one of some words, in upper or lower case; "" is the default.
func Pick[S any, E ~string](name, help string, at func(*S) *E, words ...E) Option[S] {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	return Custom(format.OptionKey{Name: name, Values: strings.Join(all, ", "), Help: help}, at,
		func(f *E, v string) string {
			i := slices.IndexFunc(all, func(w string) bool { return strings.EqualFold(w, v) })
			if i < 0 {
				return "one of " + strings.Join(all, ", ")
			}
			*f = words[i]
			return ""
		},
		func(f *E) (string, bool) { return string(*f), *f != "" })
}

// Text is any text; "" is the default.
func Text[S any, E ~string](name, values, help string, at func(*S) *E) Option[S] {
	return Custom(format.OptionKey{Name: name, Values: values, Help: help}, at,
		func(f *E, v string) string { *f = E(v); return "" },
		func(f *E) (string, bool) { return string(*f), *f != "" })
}

type whole interface{ ~int | ~int32 | ~int64 }

// Int is a number from min to max; 0 is the default. Where min is 0, that is less than 0 in the struct.
func Int[S any, N whole](name, values, help string, at func(*S) *N, min, max int64) Option[S] {
	wanted := fmt.Sprintf("a number from %d to %d", min, max)
	if max == math.MaxInt64 {
		wanted = fmt.Sprintf("a number from %d on", min)
	}
	return number(format.OptionKey{Name: name, Values: values, Help: help}, at, min, max, wanted,
		func(v string) (int64, bool) {
			n, err := strconv.ParseInt(v, 10, 64)
			return n, err == nil
		})
}

// Size is a number of bytes, perhaps with a unit; 0 is the default. Where min is 0, that is less than 0 in the struct.
func Size[S any, N whole](name, help string, at func(*S) *N, min, max int64) Option[S] {
	return number(format.OptionKey{Name: name, Values: "BYTES", Help: help}, at, min, max,
		fmt.Sprintf("a number of bytes from %d to %d, as 65536 or 64KiB,", min, max), format.ParseSize)
}

func number[S any, N whole](key format.OptionKey, at func(*S) *N, min, max int64, wanted string,
	parse func(string) (int64, bool)) Option[S] {
	return Custom(key, at,
		func(f *N, v string) string {
			n, ok := parse(v)
			if !ok || n < min || n > max {
				return wanted
			}
			if *f = N(n); n == 0 {
				*f--
			}
			return ""
		},
		func(f *N) (string, bool) {
			if *f < 0 && min == 0 {
				return "0", true
			}
			return strconv.FormatInt(int64(*f), 10), *f != 0
		})
}

// Or is n, or def if n is 0, which is the default, and 0 if n is less than that; see Int.
func Or[N whole](n, def N) N {
	return max(cmp.Or(n, def), 0)
}

// IntAt is a number from min to max, of which 0 may be one; nil is the default.
func IntAt[S any](name, values, help string, at func(*S) **int, min, max int) Option[S] {
	return Custom(format.OptionKey{Name: name, Values: values, Help: help}, at,
		func(f **int, v string) string {
			n, err := strconv.Atoi(v)
			if err != nil || n < min || n > max {
				return fmt.Sprintf("a number from %d to %d", min, max)
			}
			*f = &n
			return ""
		},
		func(f **int) (string, bool) {
			if *f == nil {
				return "", false
			}
			return strconv.Itoa(**f), true
		})
}

// List is names with commas between them, see Split; no text is no name.
func List[S any](name, values, help string, at func(*S) *[]string) Option[S] {
	return Custom(format.OptionKey{Name: name, Values: values, Help: help}, at,
		func(f *[]string, v string) (wanted string) {
			if *f = nil; v == "" {
				return ""
			}
			names, wanted := Split(v)
			if wanted == "" {
				*f = names
			}
			return wanted
		},
		func(f *[]string) (string, bool) { return Join(*f), len(*f) > 0 })
}

// Split takes a list apart. A name that begins with a quotation mark ends with one, and in it two stand for one: so
// names with commas can be said. wanted: what would be a list.
func Split(v string) (names []string, wanted string) {
	for {
		name, rest, ok := Unquote(v, ",")
		if !ok {
			return nil, `names with commas between them, as a,b or "a,b",c,`
		}
		names = append(names, name)
		rest, more := strings.CutPrefix(rest, ",")
		if !more {
			return names, ""
		}
		v = rest
	}
}

// Unquote reads the name at the beginning of v, to the first of the characters ends, which is that of rest, or as it
// stands in quotation marks. Blanks around it are none of it.
func Unquote(v, ends string) (name, rest string, ok bool) {
	v = strings.TrimLeft(v, " ")
	if !strings.HasPrefix(v, `"`) {
		i := strings.IndexAny(v, ends)
		if i < 0 {
			i = len(v)
		}
		return strings.TrimSpace(v[:i]), v[i:], true
	}
	var b strings.Builder
	for i := 1; i < len(v); i++ {
		if v[i] != '"' {
			b.WriteByte(v[i])
			continue
		}
		if i+1 < len(v) && v[i+1] == '"' {
			b.WriteByte('"')
			i++
			continue
		}
		rest := strings.TrimLeft(v[i+1:], " ")
		return b.String(), rest, rest == "" || strings.IndexByte(ends, rest[0]) >= 0
	}
	return "", "", false
}

// Join is what Split takes apart.
func Join(names []string) string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = Quote(name)
	}
	return strings.Join(out, ",")
}

// Quote is a name as a list has it, in which others of special may not stand as they are.
func Quote(name string, special ...string) string {
	if name != "" && strings.TrimSpace(name) == name && !strings.ContainsAny(name, `",`+strings.Join(special, "")) {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// Within are options of a struct that is part of another.
func Within[S, C any](options []Option[C], at func(*S) *C) []Option[S] {
	out := make([]Option[S], len(options))
	for i, x := range options {
		out[i] = Option[S]{OptionKey: x.OptionKey, field: func(o *S) any { return x.field(at(o)) },
			set: func(o *S, column, v string) string { return x.set(at(o), column, v) },
			get: func(o *S, column string) (string, bool) { return x.get(at(o), column) }}
		if x.columns != nil {
			out[i].columns = func(o *S) []string { return x.columns(at(o)) }
		}
	}
	return out
}

// OfColumns are options that are for all columns, as NAME, and for one, as NAME.COLUMN: those of the struct C.
func OfColumns[S, C any](options []Option[C], all func(*S) *C, columns func(*S) *map[string]C) []Option[S] {
	of := func(o *S, column string) C {
		if column == "" {
			return *all(o)
		}
		return (*columns(o))[column]
	}
	out := make([]Option[S], len(options))
	for i, x := range options {
		out[i] = Option[S]{OptionKey: x.OptionKey, field: func(o *S) any { return x.field(all(o)) },
			columns: func(o *S) []string { return slices.Sorted(maps.Keys(*columns(o))) },
			get:     func(o *S, column string) (string, bool) { c := of(o, column); return x.get(&c, "") },
			set: func(o *S, column, v string) string {
				c := of(o, column)
				wanted := x.set(&c, "", v)
				if column == "" {
					*all(o) = c
					return wanted
				}
				m := columns(o)
				if *m == nil {
					*m = map[string]C{}
				}
				(*m)[column] = c
				return wanted
			}}
	}
	return out
}
