package stoa_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"testing"

	"stoa"
	"stoa/pred"
)

// The example in the README: TestReadmeExample compares the two.
func Example() {
	ctx := context.Background()
	t, err := stoa.Open(ctx, "corpus/redfile/red1/flat_pages.red", stoa.OpenOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	where, err := pred.Parse("i > 2000000000")
	if err != nil {
		log.Fatal(err)
	}
	for batch, err := range t.Scan(ctx, stoa.ScanSpec{Columns: []string{"i", "d"}, Filter: where}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(batch.NumRows(), "rows") // an Arrow record batch, valid until the next step of the loop
	}
	// Output:
	// 13 rows
}

func TestReadmeExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(readme), "```go\n")
	block, _, _ = strings.Cut(block, "```\n")
	_, body, _ := strings.Cut(string(code), "func Example() {\n")
	body, _, _ = strings.Cut(body, "\t// Output:\n")
	var want strings.Builder
	for l := range strings.Lines(body) {
		want.WriteString(strings.TrimPrefix(l, "\t"))
	}
	if block != want.String() {
		t.Errorf("README.md: got\n%s\nwant the body of Example\n%s", block, want.String())
	}
}
