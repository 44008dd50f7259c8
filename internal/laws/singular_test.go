package laws_test

import (
	"regexp"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/store"
)

// several matches what is said of one thing as if it were several.
var several = regexp.MustCompile(`(^|[^0-9.,])1 (rows|blocks|blocklets|tablets|columns|pages|files|values|` +
	`chunks|row groups)\b`)

// TestOneIsNotSeveral: no description of a table of one row and one column says "1 rows" or "1 columns".
func TestOneIsNotSeveral(t *testing.T) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "a",
		Type: arrow.PrimitiveTypes.Int64}}, nil))
	defer b.Release()
	b.Field(0).(*array.Int64Builder).Append(7)
	batch := b.NewRecordBatch()
	singular := regexp.MustCompile(`(^|[^0-9.,])1 (row|block|blocklet|column|page|value|row group)\b`)
	for _, to := range []string{"parquet", "redfile", "trevni", "trevni-avro", "cfile", "carbon"} {
		mem := store.NewMemory(nil)
		w, err := stoa.Create(t.Context(), "t", batch.Schema(), stoa.CreateOptions{To: to, Sink: mem.Sink("t")})
		if err == nil {
			err = w.Write(t.Context(), batch)
		}
		if err == nil {
			_, err = w.Close(t.Context())
		}
		if err != nil {
			t.Fatalf("%s: %v", to, err)
		}
		seen := 0
		check := func(text string) {
			if several.MatchString(text) {
				t.Errorf("%s: %q", to, text)
			}
			if singular.MatchString(text) {
				seen++
			}
		}
		o := stoa.OpenOptions{Tree: mem}
		for n, err := range stoa.Describe(t.Context(), "t", stoa.DescribeOptions{OpenOptions: o}) {
			if err != nil {
				t.Fatalf("%s: %v", to, err)
			}
			check(n.Value)
		}
		if seen == 0 {
			t.Errorf("%s: no description counts anything", to)
		}
	}
}
