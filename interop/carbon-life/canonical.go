//go:build interop

package carbonlife

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"
)

// canonical returns a row as a text: members sorted, without nulls, numbers as fractions (so that 1.50, "1.5" and 1.5
// are equal), times as milliseconds.
func canonical(c map[string]any) string {
	var b bytes.Buffer
	for _, k := range slices.Sorted(maps.Keys(c)) {
		if c[k] != nil {
			fmt.Fprintf(&b, "%s=%s ", k, text(c[k]))
		}
	}
	return b.String()
}

func text(v any) string {
	switch v := v.(type) {
	case []any:
		s := "["
		for _, x := range v {
			s += text(x) + ","
		}
		return s + "]"
	case string:
		if t, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return fmt.Sprint(t.UnixMilli())
		}
		if r, ok := new(big.Rat).SetString(v); ok {
			return r.RatString()
		}
		return fmt.Sprintf("%q", v)
	case bool:
		return fmt.Sprint(v)
	case float64:
		return new(big.Rat).SetFloat64(v).RatString()
	}
	r, ok := new(big.Rat).SetString(fmt.Sprint(v))
	if !ok {
		return fmt.Sprintf("?%v", v)
	}
	return r.RatString()
}

// parse turns JSON lines into canonical texts, sorted.
func parse(lines []string) (out []string, err error) {
	for _, l := range lines {
		d := json.NewDecoder(bytes.NewReader([]byte(l)))
		d.UseNumber()
		var c map[string]any
		if err := d.Decode(&c); err != nil {
			return nil, fmt.Errorf("%s: %v", l, err)
		}
		out = append(out, canonical(c))
	}
	slices.Sort(out)
	return out, nil
}

// differ describes the first difference between two sorted lists of rows; "" = equal.
func differ(got, want []string) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return fmt.Sprintf("got %d rows, want %d; the first missing one is %s", len(got), len(want), want[i])
		case i >= len(want):
			return fmt.Sprintf("got %d rows, want %d; the first surplus one is %s", len(got), len(want), got[i])
		case got[i] != want[i]:
			return fmt.Sprintf("%d rows for %d, of which one is\n%s\nfor\n%s", len(got), len(want), got[i], want[i])
		}
	}
	return ""
}
