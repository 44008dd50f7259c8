package trevni_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/format/trevni"
	"stoa/internal/scan"
	"stoa/store"
)

// TestColumnsThatBeginTogether: if two columns begin at the same offset, the same values are never read for both.
func TestColumnsThatBeginTogether(t *testing.T) {
	for _, name := range []string{"v1.12.2/avro_unions.trv", "v1.12.2/all_null_crc32.trv"} {
		data := corpusFile(t, name)
		tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f.trv": data}), Name: "f.trv"}
		var starts []fault.Span
		for n, err := range trevni.Format.Describe(t.Context(), tg, format.DescribeOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(n.Name, "column-start[") {
				starts = append(starts, n.At)
			}
		}
		if len(starts) < 3 {
			t.Fatalf("%s: %d columns", name, len(starts))
		}
		for i := range starts {
			for _, k := range []int{0, len(starts) / 2, i - 1, len(starts) - 1} {
				if k < 0 || k == i {
					continue
				}
				bad := slices.Clone(data)
				copy(bad[starts[i].Off:], data[starts[k].Off:starts[k].End()])
				what := fmt.Sprintf("%s, column %d where %d begins", name, i, k)
				if errorsOf(t, bad) == 0 {
					t.Errorf("%s: verify finds nothing", what)
				}
				if _, err := scanAll(t.Context(), bad, scan.Spec{}, false); !errors.Is(err, fault.Corrupt) {
					t.Errorf("%s: reading it: %v", what, err)
				}
				if _, reported, err := recovered(t, bad); err == nil && !reported {
					t.Errorf("%s: recovery reports nothing", what)
				}
			}
		}
	}
}
