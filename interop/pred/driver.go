// Command pred evaluates predicates over one table for judge.py: a predicate a line on standard input; on standard
// output a line of the ids of the rows that pass, or "error: " and the reason.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	_ "stoa/format/parquet"
	"stoa/pred"
)

func main() {
	ctx := context.Background()
	t, err := stoa.Open(ctx, os.Args[1], stoa.OpenOptions{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		ids, err := rows(ctx, t, in.Text())
		if err != nil {
			fmt.Println("error: " + strings.SplitN(err.Error(), "\n", 2)[0])
			continue
		}
		fmt.Println(strings.Join(ids, " "))
	}
}

// rows returns the ids of the rows for which a predicate is TRUE.
func rows(ctx context.Context, t *stoa.Table, text string) (ids []string, err error) {
	e, err := pred.Parse(text)
	if err != nil {
		return nil, err
	}
	for rec, err := range t.Scan(ctx, stoa.ScanSpec{Columns: []string{"id"}, Filter: e}) {
		if err != nil {
			return nil, err
		}
		for i := range int(rec.NumRows()) {
			ids = append(ids, fmt.Sprint(rec.Column(0).(*array.Int64).Value(i)))
		}
		rec.Release()
	}
	return ids, nil
}
