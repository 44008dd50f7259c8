package format_test

import (
	"testing"

	"stoa/format"
)

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int64{"0": 0, "1": 1, "1000": 1000, "7B": 7, "64kB": 64_000, "64KiB": 65_536,
		"512MiB": 512 << 20, "512 MiB": 512 << 20, "3GB": 3_000_000_000, "2TiB": 2 << 40} {
		if n, ok := format.ParseSize(s); !ok || n != want {
			t.Errorf("%q: %d, %v", s, n, ok)
		}
	}
	for _, s := range []string{"", "B", "MiB", "-1", "1.5GB", "1iB", "1Mi", "1BB", "5000000TiB",
		"9223372036854775808", "1  MB", "1e3"} {
		if n, ok := format.ParseSize(s); ok {
			t.Errorf("%q is taken for %d", s, n)
		}
	}
}
