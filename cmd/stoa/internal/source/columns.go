package source

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/cmd/stoa/internal/cli"
	"stoa/fault"
	"stoa/pred"
)

// globs are the characters of patterns in the names of --columns.
const globs = "*?["

// ExpandColumns replaces the patterns among the columns of --columns by the columns that they match, in the order of
// the table. A column is read once: a pattern skips those that are also named without one, or matched earlier. What is
// the name of a column is no pattern.
func ExpandColumns(fields []arrow.Field, columns []string) ([]string, error) {
	isPattern := func(c string) bool {
		if components, any := globOf(c); !any || len(components) == 0 {
			return false
		}
		_, _, err := pred.Find(fields, c)
		return err != nil
	}
	if !slices.ContainsFunc(columns, isPattern) {
		return columns, nil
	}
	var plain, out []string
	for _, c := range columns {
		if !isPattern(c) {
			plain = append(plain, pred.JoinPath(pred.SplitPath(c)...))
		}
	}
	for _, c := range columns {
		if !isPattern(c) {
			out = append(out, c)
			continue
		}
		components, _ := globOf(c)
		found, err := matches(fields, components, nil)
		if err != nil {
			return nil, &cli.UseError{Message: "--columns " + c + " is not a pattern",
				Hint: "* is any text, ? a character, [a-z] one of several"}
		}
		if len(found) == 0 {
			return nil, noMatch(fields, c)
		}
		for _, f := range found {
			if !slices.Contains(plain, f) && !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	return out, nil
}

// globOf divides a path into patterns, one per name, and reports whether any of them has more than one match. A name in
// double quotes matches itself only.
func globOf(p string) (components []string, any bool) {
	for {
		var c string
		if strings.HasPrefix(p, `"`) {
			c = pred.SplitPath(p)[0]
			end := len(pred.JoinPath(c))
			if !strings.HasPrefix(pred.JoinPath(c), `"`) {
				end += 2
			}
			p = p[min(end, len(p)):]
			c = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(c)
		} else {
			i := strings.IndexByte(p, '.')
			if i < 0 {
				i = len(p)
			}
			c, p = p[:i], p[i:]
			any = any || strings.ContainsAny(c, globs)
		}
		components = append(components, c)
		if p == "" {
			return components, any
		}
		p = strings.TrimPrefix(p, ".")
	}
}

// matches returns the columns that match the patterns of a path. As in paths without patterns, a name may have points
// in it.
func matches(fields []arrow.Field, components, above []string) (out []string, err error) {
	for _, f := range fields {
		for used := 1; used <= len(components); used++ {
			ok, err := matchName(strings.Join(components[:used], "."), f.Name)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			at := append(slices.Clone(above), f.Name)
			if used == len(components) {
				out = append(out, pred.JoinPath(at...))
				continue
			}
			if s, isStruct := storage(f.Type).(*arrow.StructType); isStruct {
				below, err := matches(s.Fields(), components[used:], at)
				if err != nil {
					return nil, err
				}
				out = append(out, below...)
			}
		}
	}
	return out, nil
}

func storage(t arrow.DataType) arrow.DataType {
	if x, ok := t.(arrow.ExtensionType); ok {
		return x.StorageType()
	}
	return t
}

// matchName is path.Match for names in which a slash has no meaning.
func matchName(pattern, name string) (bool, error) {
	const slash = "\x00"
	return path.Match(strings.ReplaceAll(pattern, "/", slash), strings.ReplaceAll(name, "/", slash))
}

// noMatch returns the error that no column matches a pattern, with the columns that may have been meant.
func noMatch(fields []arrow.Field, pattern string) error {
	e := &cli.UseError{Message: "no column matches " + pattern}
	plain := strings.NewReplacer("*", "", "?", "", "[", "", "]", "").Replace(pattern)
	_, _, err := pred.Find(fields, plain)
	var reason *fault.Error
	if errors.As(err, &reason) {
		if _, near, ok := strings.Cut(reason.Reason, "; "); ok {
			e.Hint = near
		}
	}
	if err == nil {
		e.Hint = "did you mean " + plain + "?"
	}
	return e
}
