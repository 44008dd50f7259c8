// Package option keeps the options of a format in one table, which yields the parser of --opt KEY=VALUE, the keys in
// help and docs, the error for an unknown key, and the conversion of a struct of options to strings.
//
// A format has a struct whose zero value is the default of each option, and a Table with one Option for each field:
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
	"maps"
	"slices"

	"stoa/format"
)

// Table is the options of a format for one purpose. S is their struct.
type Table[S any] struct {
	Format  string // the format's name, for errors
	For     string // "reading" or "writing"
	Options []Option[S]
	// Check refuses combinations that make no sense; nil: all are allowed.
	Check func(o *S) error
}

// Option is one option of S. Apart from its adapters to S and to the type of the field, its code is shared by all
// structs.
type Option[S any] struct{ core }

// Field returns a pointer to the field of o that the option sets; for a per-column option, to the value for all
// columns.
func (x *Option[S]) Field(o *S) any { return x.field(o) }

func (t *Table[S]) table() *table {
	cores := make([]*core, len(t.Options))
	for i := range t.Options {
		cores[i] = &t.Options[i].core
	}
	return &table{t.Format, t.For, cores}
}

// Keys returns the options for help and docs: format.Format.ReadKeys and WriteKeys.
func (t *Table[S]) Keys() []format.OptionKey { return t.table().keys() }

// Parse converts strings to a struct. An unknown key and a bad value are Invalid.
func (t *Table[S]) Parse(opts map[string]string) (o S, err error) {
	if err := t.table().parse(&o, opts); err != nil {
		return o, err
	}
	if t.Check != nil {
		err = t.Check(&o)
	}
	return o, err
}

// ParseOwn is Parse for those of opts that are in the table. It returns the others, which are meant for another format:
// one whose tables consist of files of a second format also has that format's options.
func (t *Table[S]) ParseOwn(opts map[string]string) (o S, others map[string]string, err error) {
	own, others := map[string]string{}, map[string]string{}
	for k, v := range opts {
		if t.table().has(k) {
			own[k] = v
		} else {
			others[k] = v
		}
	}
	o, err = t.Parse(own)
	return o, others, err
}

// Merge merges options of several tables, as strings.
func Merge(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, x := range all {
		maps.Copy(out, x)
	}
	return out
}

// Strings returns the options of o that are not the default, such that Parse returns o; nil if there are none.
func (t *Table[S]) Strings(o *S) map[string]string { return t.table().strings(o) }

// point adapts at to a struct of any type.
func point[S, F any](at func(*S) *F) func(o any) any { return func(o any) any { return at(o.(*S)) } }

// Custom is an option with a syntax of its own. set returns a description of valid values if v is not one; get returns
// false for the default.
func Custom[S, F any](key format.OptionKey, at func(*S) *F, set func(f *F, v string) (wanted string),
	get func(f *F) (v string, given bool)) Option[S] {
	return Option[S]{custom(key, point(at), func(f any, v string) string { return set(f.(*F), v) },
		func(f any) (string, bool) { return get(f.(*F)) })}
}

// Bool is an option that is false by default.
func Bool[S any](name, help string, at func(*S) *bool) Option[S] {
	return Option[S]{flag(name, help, point(at), false)}
}

// Not is an option that is true by default: its field holds the negation.
func Not[S any](name, help string, at func(*S) *bool) Option[S] {
	return Option[S]{flag(name, help, point(at), true)}
}

// Tri is an option that is true, false or, with nil, unset.
func Tri[S any](name, help string, at func(*S) **bool) Option[S] {
	return Option[S]{tri(name, help, point(at))}
}

// Pick is one of several words, case-insensitive; "" is the default.
func Pick[S any, E ~string](name, help string, at func(*S) *E, words ...E) Option[S] {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	return Option[S]{pick(name, help, point(at), accessText[E], all)}
}

// Text is any text; "" is the default.
func Text[S any, E ~string](name, values, help string, at func(*S) *E) Option[S] {
	return Option[S]{text(format.OptionKey{Name: name, Values: values, Help: help}, point(at), accessText[E])}
}

// accessText accesses a field of a string type: if set is true it stores v. It returns the current value.
func accessText[E ~string](f any, v string, set bool) string {
	e := f.(*E)
	if set {
		*e = E(v)
	}
	return string(*e)
}

type whole interface{ ~int | ~int32 | ~int64 }

// accessNumber accesses a field of a number type: if set is true it stores n. It returns the current value.
func accessNumber[N whole](f any, n int64, set bool) int64 {
	p := f.(*N)
	if set {
		*p = N(n)
	}
	return int64(*p)
}

// Int is a number from min to max. In the struct 0 is the default; if min is 0, a negative number stands for the value
// 0.
func Int[S any, N whole](name, values, help string, at func(*S) *N, min, max int64) Option[S] {
	return Option[S]{integer(format.OptionKey{Name: name, Values: values, Help: help}, point(at), accessNumber[N],
		min, max)}
}

// Size is a number of bytes, optionally with a unit. In the struct 0 is the default; if min is 0, a negative number
// stands for the value 0.
func Size[S any, N whole](name, help string, at func(*S) *N, min, max int64) Option[S] {
	return Option[S]{size(format.OptionKey{Name: name, Values: "BYTES", Help: help}, point(at), accessNumber[N],
		min, max)}
}

// Or returns n; def if n is 0, the default; and 0 if n is negative (see Int).
func Or[N whole](n, def N) N {
	return max(cmp.Or(n, def), 0)
}

// IntAt is a number from min to max, which may include 0; nil is the default.
func IntAt[S any](name, values, help string, at func(*S) **int, min, max int) Option[S] {
	return Option[S]{intAt(format.OptionKey{Name: name, Values: values, Help: help}, point(at), min, max)}
}

// List is names separated by commas, see Split; an empty text has no names.
func List[S any](name, values, help string, at func(*S) *[]string) Option[S] {
	return Option[S]{list(format.OptionKey{Name: name, Values: values, Help: help}, point(at))}
}

// Within converts options of C to options of S, a struct that contains it.
func Within[S, C any](options []Option[C], at func(*S) *C) []Option[S] {
	out, in := make([]Option[S], len(options)), point(at)
	for i, x := range options {
		out[i].core = within(x.core, in)
	}
	return out
}

// OfColumns converts the options of struct C to options that can be set for all columns, as NAME, or for one, as
// NAME.COLUMN.
func OfColumns[S, C any](options []Option[C], all func(*S) *C, columns func(*S) *map[string]C) []Option[S] {
	p := perColumn{all: point(all),
		names: func(o any) []string { return slices.Sorted(maps.Keys(*columns(o.(*S)))) },
		with: func(o any, column string, keep bool, do func(c any)) {
			m := columns(o.(*S))
			c := (*m)[column]
			if do(&c); !keep {
				return
			}
			if *m == nil {
				*m = map[string]C{}
			}
			(*m)[column] = c
		}}
	out := make([]Option[S], len(options))
	for i, x := range options {
		out[i].core = p.option(x.core)
	}
	return out
}
