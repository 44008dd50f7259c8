package option

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format"
)

// core is an option of a struct of any type. Generic code is compiled once per struct; keeping the bulk of the code
// here, without type parameters, avoids that.
type core struct {
	format.OptionKey
	field func(o any) any // returns a pointer to the field, by which a test finds it
	// set parses a value. In NAME.COLUMN, column is the part after the dot. wanted describes a valid value if v is not
	// one.
	set     func(o any, column, v string) (wanted string)
	get     func(o any, column string) (v string, given bool)
	columns func(o any) []string // columns with values of their own; nil: the option cannot be set per column
}

// table is a Table for a struct of any type.
type table struct {
	format, purpose string
	options         []*core
}

func (t *table) keys() []format.OptionKey {
	out := make([]format.OptionKey, len(t.options))
	for i, x := range t.options {
		out[i] = x.OptionKey
	}
	return out
}

func (t *table) parse(o any, opts map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(opts)) {
		if err := t.set(o, key, opts[key]); err != nil {
			return err
		}
	}
	return nil
}

// has reports whether the table has an option called name.
func (t *table) has(name string) bool {
	return slices.ContainsFunc(t.options, func(x *core) bool { return x.Name == name })
}

func (t *table) set(o any, key, v string) error {
	name, column, one := strings.Cut(key, ".")
	for _, x := range t.options {
		if x.Name != name || one && (x.columns == nil || column == "") {
			continue
		}
		if wanted := x.set(o, column, v); wanted != "" {
			return fault.Invalidf("%s: option %s=%s: expected %s", t.format, key, v, wanted)
		}
		return nil
	}
	return fault.Invalidf("%s: there is no option %q for %s", t.format, key, t.purpose)
}

func (t *table) strings(o any) map[string]string {
	var out map[string]string
	add := func(key string, x *core, column string) {
		if v, given := x.get(o, column); given {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = v
		}
	}
	for _, x := range t.options {
		add(x.Name, x, "")
		if x.columns != nil {
			for _, column := range x.columns(o) {
				add(x.Name+"."+column, x, column)
			}
		}
	}
	return out
}

// What makes options is not inlined: otherwise each struct of options has a copy of it.

func custom(key format.OptionKey, at func(any) any, set func(f any, v string) (wanted string),
	get func(f any) (v string, given bool)) core {
	return core{OptionKey: key, field: at,
		set: func(o any, _, v string) string { return set(at(o), v) },
		get: func(o any, _ string) (string, bool) { return get(at(o)) }}
}

func setBool(v string, not bool, to *bool) (wanted string) {
	if v != "true" && v != "false" {
		return "true or false"
	}
	*to = (v == "true") != not
	return ""
}

//go:noinline
func flag(name, help string, at func(any) any, not bool) core {
	return custom(format.OptionKey{Name: name, Values: "true, false", Help: help}, at,
		func(f any, v string) string { return setBool(v, not, f.(*bool)) },
		func(f any) (string, bool) { b := *f.(*bool); return strconv.FormatBool(b != not), b })
}

//go:noinline
func tri(name, help string, at func(any) any) core {
	return custom(format.OptionKey{Name: name, Values: "true, false", Help: help}, at,
		func(f any, v string) string { b := f.(**bool); *b = new(bool); return setBool(v, false, *b) },
		func(f any) (string, bool) {
			b := *f.(**bool)
			if b == nil {
				return "", false
			}
			return strconv.FormatBool(*b), true
		})
}

//go:noinline
func pick(name, help string, at func(any) any, access func(f any, v string, set bool) string, words []string) core {
	x := text(format.OptionKey{Name: name, Values: strings.Join(words, ", "), Help: help}, at, access)
	x.set = func(o any, _, v string) string {
		i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, v) })
		if i < 0 {
			return "one of " + strings.Join(words, ", ")
		}
		access(at(o), words[i], true)
		return ""
	}
	return x
}

//go:noinline
func text(key format.OptionKey, at func(any) any, access func(f any, v string, set bool) string) core {
	return custom(key, at,
		func(f any, v string) string { access(f, v, true); return "" },
		func(f any) (string, bool) { v := access(f, "", false); return v, v != "" })
}

//go:noinline
func integer(key format.OptionKey, at func(any) any, access func(f any, n int64, set bool) int64, min, max int64) core {
	wanted := fmt.Sprintf("a number from %d to %d", min, max)
	if max == math.MaxInt64 {
		wanted = fmt.Sprintf("a number from %d on", min)
	}
	return number(key, at, access, min, max, wanted, func(v string) (int64, bool) {
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil
	})
}

//go:noinline
func size(key format.OptionKey, at func(any) any, access func(f any, n int64, set bool) int64, min, max int64) core {
	return number(key, at, access, min, max,
		fmt.Sprintf("a number of bytes from %d to %d, as 65536 or 64KiB,", min, max), format.ParseSize)
}

func number(key format.OptionKey, at func(any) any, access func(f any, n int64, set bool) int64, min, max int64,
	wanted string, parse func(string) (int64, bool)) core {
	return custom(key, at,
		func(f any, v string) string {
			n, ok := parse(v)
			if !ok || n < min || n > max {
				return wanted
			}
			if n == 0 {
				n = -1
			}
			access(f, n, true)
			return ""
		},
		func(f any) (string, bool) {
			n := access(f, 0, false)
			if n < 0 && min == 0 {
				return "0", true
			}
			return strconv.FormatInt(n, 10), n != 0
		})
}

//go:noinline
func intAt(key format.OptionKey, at func(any) any, min, max int) core {
	return custom(key, at,
		func(f any, v string) string {
			n, err := strconv.Atoi(v)
			if err != nil || n < min || n > max {
				return fmt.Sprintf("a number from %d to %d", min, max)
			}
			*f.(**int) = &n
			return ""
		},
		func(f any) (string, bool) {
			n := *f.(**int)
			if n == nil {
				return "", false
			}
			return strconv.Itoa(*n), true
		})
}

//go:noinline
func list(key format.OptionKey, at func(any) any) core {
	return custom(key, at,
		func(f any, v string) (wanted string) {
			to := f.(*[]string)
			if *to = nil; v == "" {
				return ""
			}
			names, wanted := Split(v)
			if wanted == "" {
				*to = names
			}
			return wanted
		},
		func(f any) (string, bool) { names := *f.(*[]string); return Join(names), len(names) > 0 })
}

// within converts an option of a struct to an option of the struct that contains it.
//
//go:noinline
func within(x core, at func(any) any) core {
	out := core{OptionKey: x.OptionKey, field: func(o any) any { return x.field(at(o)) },
		set: func(o any, column, v string) string { return x.set(at(o), column, v) },
		get: func(o any, column string) (string, bool) { return x.get(at(o), column) }}
	if x.columns != nil {
		out.columns = func(o any) []string { return x.columns(at(o)) }
	}
	return out
}

// perColumn locates the struct of options for all columns, and those for single columns.
type perColumn struct {
	all   func(o any) any
	names func(o any) []string
	// with calls do with a copy of a column's struct, which is stored afterwards if keep is true
	with func(o any, column string, keep bool, do func(c any))
}

// option makes an option that can be set for one column or for all.
func (p perColumn) option(x core) core {
	out := within(x, p.all)
	out.columns = p.names
	out.get = func(o any, column string) (v string, given bool) {
		if column == "" {
			return x.get(p.all(o), "")
		}
		p.with(o, column, false, func(c any) { v, given = x.get(c, "") })
		return v, given
	}
	out.set = func(o any, column, v string) (wanted string) {
		if column == "" {
			return x.set(p.all(o), "", v)
		}
		p.with(o, column, true, func(c any) { wanted = x.set(c, "", v) })
		return wanted
	}
	return out
}
