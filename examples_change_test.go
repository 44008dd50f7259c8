package stoa_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
)

var visitColumns = arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
	{Name: "country", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)

// addVisits appends two rows to a table, as a segment of their own.
func addVisits(ctx context.Context, c *stoa.Changer, o stoa.AppendOptions) stoa.AppendResult {
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, visitColumns,
		strings.NewReader(`[{"id":1,"country":"FR"},{"id":2,"country":"NO"}]`))
	rows := func(yield func(arrow.RecordBatch, error) bool) { yield(b, err) }
	return must(c.Append(ctx, visitColumns, rows, o))
}

// withVisits runs f with a table of two segments of two rows each.
func withVisits(f func(ctx context.Context, c *stoa.Changer)) {
	inTemp(func(ctx context.Context, dir string) {
		name := filepath.Join(dir, "visits")
		if err := stoa.CreateTable(ctx, name, visitColumns, stoa.CreateTableOptions{},
			stoa.OpenOptions{}); err != nil {
			log.Fatal(err)
		}
		c := must(stoa.OpenChanger(ctx, name, stoa.OpenOptions{}))
		addVisits(ctx, c, stoa.AppendOptions{})
		addVisits(ctx, c, stoa.AppendOptions{})
		f(ctx, c)
	})
}

// printVisits prints the number of rows and the names of the columns.
func printVisits(ctx context.Context, c *stoa.Changer) {
	t := must(c.Open(ctx, stoa.OpenOptions{}))
	defer t.Close()
	var names []string
	for _, f := range t.Schema().Fields() {
		names = append(names, f.Name)
	}
	fmt.Println(must(t.Count(ctx, stoa.ScanSpec{})), "rows of", strings.Join(names, ", "))
}

// ok ends the example if there is an error.
func ok(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Append adds rows as one segment: readers see all of them or none.
func ExampleChanger_Append() {
	withVisits(func(ctx context.Context, c *stoa.Changer) {
		for _, dry := range []bool{true, false} {
			added := addVisits(ctx, c, stoa.AppendOptions{DryRun: dry})
			fmt.Println(added.Rows, "rows, read back:", added.Checked)
			printVisits(ctx, c)
		}
	})
	// Output:
	// 2 rows, read back: false
	// 4 rows of id, country
	// 2 rows, read back: true
	// 6 rows of id, country
}

// Delete removes the rows that a predicate picks.
func ExampleChanger_Delete() {
	withVisits(func(ctx context.Context, c *stoa.Changer) {
		fmt.Println(must(c.Delete(ctx, stoa.DeleteOptions{Where: "country = 'NO'"})), "deleted")
		printVisits(ctx, c)
	})
	// Output:
	// 2 deleted
	// 2 rows of id, country
}

// Update sets columns to values, given as text; nil is null.
func ExampleChanger_Update() {
	withVisits(func(ctx context.Context, c *stoa.Changer) {
		norway := "Norway"
		fmt.Println(must(c.Update(ctx, stoa.UpdateOptions{Where: "country = 'NO'",
			Set: map[string]*string{"country": &norway, "id": nil}})), "changed")
		printVisits(ctx, c)
	})
	// Output:
	// 2 changed
	// 4 rows of id, country
}

// Merge replaces the rows that have the same key, and adds the others.
func ExampleChanger_Merge() {
	withVisits(func(ctx context.Context, c *stoa.Changer) {
		b, _, err := array.RecordFromJSON(memory.DefaultAllocator, visitColumns,
			strings.NewReader(`[{"id":2,"country":"SE"},{"id":3,"country":"DK"}]`))
		rows := func(yield func(arrow.RecordBatch, error) bool) { yield(b, err) }
		done := must(c.Merge(ctx, visitColumns, rows, stoa.MergeOptions{Key: []string{"id"}}))
		fmt.Println(done.Replaced, "replaced,", done.Added, "added")
		printVisits(ctx, c)
	})
	// Output:
	// 2 replaced, 1 added
	// 4 rows of id, country
}

// DisableDependents marks the views over a table as out of date, which changes of its rows make them.
func ExampleChanger_DisableDependents() {
	inTemp(func(ctx context.Context, dir string) {
		views := filepath.Join(dir, "_system", "mv_status") // where CarbonData lists the views
		ok(os.Mkdir(filepath.Dir(views), 0o777))
		ok(os.WriteFile(views, []byte(`[{"identifier":{"databaseName":"default","tableName":"by_country"},`+
			`"status":"ENABLED"}]`), 0o666))
		var o stoa.CreateTableOptions
		o.Properties = map[string]string{"relatedmvtablesmap": `{"default":["by_country"]}`}
		name := filepath.Join(dir, "visits")
		ok(stoa.CreateTable(ctx, name, visitColumns, o, stoa.OpenOptions{}))
		c := must(stoa.OpenChanger(ctx, name, stoa.OpenOptions{}))
		fmt.Println(must(c.DisableDependents(ctx, false)))
		addVisits(ctx, c, stoa.AppendOptions{})
		printVisits(ctx, c)
	})
	// Output:
	// [default.by_country]
	// 2 rows of id, country
}

// Rename moves the table; the Changer then has the new name.
func ExampleChanger_Rename() {
	inTemp(func(ctx context.Context, dir string) {
		from, to := filepath.Join(dir, "visits"), filepath.Join(dir, "calls")
		ok(stoa.CreateTable(ctx, from, visitColumns, stoa.CreateTableOptions{}, stoa.OpenOptions{}))
		c := must(stoa.OpenChanger(ctx, from, stoa.OpenOptions{}))
		addVisits(ctx, c, stoa.AppendOptions{})
		ok(c.Rename(ctx, stoa.RenameOptions{To: to}))
		printVisits(ctx, c)
		_, err := stoa.Open(ctx, from, stoa.OpenOptions{})
		fmt.Println(err != nil)
	})
	// Output:
	// 2 rows of id, country
	// true
}

// DeleteSegments removes whole loads.
func ExampleChanger_DeleteSegments() {
	withVisits(func(ctx context.Context, c *stoa.Changer) {
		ok(c.DeleteSegments(ctx, stoa.DeleteSegmentsOptions{Segments: []string{"0"}}))
		printVisits(ctx, c)
	})
	// Output:
	// 2 rows of id, country
}

// AddColumn gives existing rows a value, or null.
func ExampleChanger_AddColumn() {
	withVisits(func(ctx context.Context, c *stoa.Changer) {
		none := "0"
		ok(c.AddColumn(ctx, arrow.Field{Name: "clicks", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
			stoa.AddColumnOptions{Default: &none}))
		printVisits(ctx, c)
	})
	// Output:
	// 4 rows of id, country, clicks
}

// DropColumn changes the schema; data files keep the column until they are rewritten.
func ExampleChanger_DropColumn() {
	withVisits(func(ctx context.Context, c *stoa.Changer) {
		ok(c.DropColumn(ctx, stoa.DropColumnOptions{Column: "country"}))
		printVisits(ctx, c)
	})
	// Output:
	// 4 rows of id
}

// Compact merges segments; Clean then removes the files of those that were merged.
func ExampleChanger_Compact() {
	withVisits(func(ctx context.Context, c *stoa.Changer) {
		var o stoa.CompactOptions
		o.Major = true
		for _, done := range must(c.Compact(ctx, o)) {
			fmt.Println(strings.Join(done.From, " and "), "become", done.To)
		}
		printVisits(ctx, c)
	})
	// Output:
	// 0 and 1 become 0.1
	// 4 rows of id, country
}

// Clean removes files that are no longer part of the table.
func ExampleChanger_Clean() {
	withVisits(func(ctx context.Context, c *stoa.Changer) {
		ok(c.DeleteSegments(ctx, stoa.DeleteSegmentsOptions{Segments: []string{"1"}}))
		for _, dry := range []bool{true, false, false} {
			fmt.Println(must(c.Clean(ctx, stoa.CleanOptions{DryRun: dry})).Segments)
		}
	})
	// Output:
	// [1]
	// [1]
	// []
}

// MergeIndexes makes one index file of those of a segment. Appended segments have only one.
func ExampleChanger_MergeIndexes() {
	withVisits(func(ctx context.Context, c *stoa.Changer) {
		fmt.Println(must(c.MergeIndexes(ctx, stoa.MergeIndexesOptions{})).Files, "to merge")
	})
	// Output:
	// 0 to merge
}

// Drop removes a table with all its files.
func ExampleChanger_Drop() {
	withVisits(func(ctx context.Context, c *stoa.Changer) {
		would := must(c.Drop(ctx, stoa.DropOptions{DryRun: true}))
		done := must(c.Drop(ctx, stoa.DropOptions{}))
		fmt.Println(would == done)
		_, err := c.Open(ctx, stoa.OpenOptions{})
		fmt.Println(err != nil)
	})
	// Output:
	// true
	// true
}

// Copy copies pages without decoding them; why is the reason if it did not.
func ExampleCopy() {
	inTemp(func(ctx context.Context, dir string) {
		name := filepath.Join(dir, "people.parquet")
		people(ctx, name)
		t := must(stoa.Open(ctx, name, stoa.OpenOptions{}))
		defer t.Close()
		done, why, err := stoa.Copy(ctx, t, stoa.ScanSpec{}, filepath.Join(dir, "copy.parquet"), stoa.CreateOptions{})
		fmt.Printf("%d rows %q\n", must(done, err).Rows, why)
	})
	// Output:
	// 3 rows ""
}
