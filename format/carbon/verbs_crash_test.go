package carbon_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/format"
	"stoa/format/carbon"
)

// killedVerb is a change of a table of the orders 0 to 300 in two segments, partitioned by day, with the ids that the
// table has afterwards.
type killedVerb struct {
	name   string
	after  []int32
	do     func(ctx context.Context, c *stoa.Changer) error
	before []int32                          // nil: the orders 0 to 300
	table  func(t *testing.T) string        // makes the table, if it is another one
	is     func(t *testing.T, d string) any // what the change changes besides the rows
	was    any
	now    any
}

// killedDay returns the partition of the orders whose number modulo 5 is 1.
func killedDay() format.PartitionValues {
	day := "2019-04-15"
	return format.PartitionValues{"day": &day}
}

// appends returns a change that appends rows.
func appends(b arrow.RecordBatch, o stoa.AppendOptions) func(ctx context.Context, c *stoa.Changer) error {
	return func(ctx context.Context, c *stoa.Changer) error {
		_, err := c.Append(ctx, b.Schema(), once(b), o)
		return err
	}
}

func killedVerbs() []killedVerb {
	all := span(0, 300)
	others := slices.DeleteFunc(slices.Clone(all), func(id int32) bool { return id%5 == 1 })
	return append(streamVerbs(), []killedVerb{
		{name: "truncate", do: func(ctx context.Context, c *stoa.Changer) error {
			_, err := c.Truncate(ctx, stoa.TruncateOptions{})
			return err
		}},
		{name: "drop-partition", after: others, do: func(ctx context.Context, c *stoa.Changer) error {
			_, err := c.DropPartition(ctx, stoa.PartitionOptions{Partition: killedDay()})
			return err
		}},
		{name: "load --overwrite", after: span(1000, 3000),
			do: appends(orders(1000, 3000), stoa.AppendOptions{Overwrite: true})},
		{name: "load --overwrite --partition", after: append(slices.Clone(others), 1001),
			do: appends(orders(1001, 1002), stoa.AppendOptions{Overwrite: true, Partition: killedDay()})},
		{name: "merge", after: span(0, 2300), do: func(ctx context.Context, c *stoa.Changer) error {
			b := orders(100, 2300)
			_, err := c.Merge(ctx, b.Schema(), once(b), stoa.MergeOptions{Key: []string{"id"}})
			return err
		}},
		{name: "rename --column", after: all, do: func(ctx context.Context, c *stoa.Changer) error {
			o := stoa.AlterColumnOptions{}
			o.Column, o.Name = "name", "title"
			return c.AlterColumn(ctx, o)
		}, is: typesOf, was: "id int32,name utf8,amount decimal(10, 2),day date32",
			now: "id int32,title utf8,amount decimal(10, 2),day date32"},
		{name: "set-type", after: all, do: func(ctx context.Context, c *stoa.Changer) error {
			f := arrow.Field{Name: "amount", Type: &arrow.Decimal128Type{Precision: 18, Scale: 2}, Nullable: true}
			o := stoa.AlterColumnOptions{}
			o.Column, o.Type = "amount", &f
			return c.AlterColumn(ctx, o)
		}, is: typesOf, was: "id int32,name utf8,amount decimal(10, 2),day date32",
			now: "id int32,name utf8,amount decimal(18, 2),day date32"},
		{name: "set-property", after: all, do: func(ctx context.Context, c *stoa.Changer) error {
			return c.SetProperties(ctx, stoa.SetPropertiesOptions{Properties: map[string]*string{
				"comment": text("the first mark"), "table_blocksize": text("77")}})
		}, is: func(t *testing.T, d string) any {
			b, err := os.ReadFile(filepath.Join(d, "Metadata", "schema"))
			if err != nil {
				t.Fatal(err)
			}
			return [2]bool{bytes.Contains(b, []byte("the first mark")), bytes.Contains(b, []byte("table_blocksize"))}
		}, was: [2]bool{}, now: [2]bool{true, true}},
		{name: "add-segment", after: twice(all, 150), do: func(ctx context.Context, c *stoa.Changer) error {
			o := stoa.AddSegmentOptions{}
			o.Path = c.Place().Dir + "-place"
			_, err := c.AddSegment(ctx, o)
			return err
		}, table: func(t *testing.T) string {
			dir := newOrders(t, carbon.TableSpec{}, [2]int{0, 150}, [2]int{150, 300})
			return placedBeside(t, dir, "Fact/Part0/Segment_1")
		}},
		{name: "add-partition --location", before: others, after: all,
			do: func(ctx context.Context, c *stoa.Changer) error {
				_, err := c.AddPartition(ctx, stoa.PartitionOptions{Partition: killedDay(),
					Location: c.Place().Dir + "-place"})
				return err
			}, table: func(t *testing.T) string {
				dir := newOrders(t, carbon.TableSpec{Partition: []string{"day"}}, [2]int{0, 300})
				placedBeside(t, dir, "day=2019-04-15")
				c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := c.DropPartition(t.Context(), stoa.PartitionOptions{Partition: killedDay()}); err != nil {
					t.Fatal(err)
				}
				return dir
			}},
		{name: "rename", after: all, do: func(ctx context.Context, c *stoa.Changer) error {
			return c.Rename(ctx, stoa.RenameOptions{To: c.Place().Dir + "-moved"})
		}, is: func(t *testing.T, d string) any { return strings.HasSuffix(d, "-moved") }, was: false, now: true},
	}...)
}

// placedBeside copies files of a table to a directory beside it, and returns the table.
func placedBeside(t *testing.T, dir, files string) string {
	t.Helper()
	if err := os.CopyFS(dir+"-place", os.DirFS(filepath.Join(dir, filepath.FromSlash(files)))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// twice returns ids with those from a number on twice.
func twice(ids []int32, from int32) []int32 {
	out := slices.Clone(ids)
	for _, id := range ids {
		if id >= from {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// typesOf returns the names and types of the columns.
func typesOf(t *testing.T, dir string) any {
	t.Helper()
	x, err := stoa.Open(t.Context(), dir, stoa.OpenOptions{Formats: formats})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	var out []string
	for _, f := range x.Schema().Fields() {
		out = append(out, f.Name+" "+f.Type.String())
	}
	return strings.Join(out, ",")
}

func once(b arrow.RecordBatch) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) { yield(b, nil) }
}

// TestVerbsCrashHelper is the process that TestVerbsCrash kills.
func TestVerbsCrashHelper(t *testing.T) {
	dir, name, _ := strings.Cut(os.Getenv("STOA_CARBON_CRASH_VERB"), "|")
	if dir == "" {
		t.Skip("TestVerbsCrash runs it in a process of its own")
	}
	for _, v := range killedVerbs() {
		if v.name != name {
			continue
		}
		c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{Opts: external})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("begin")
		if err := v.do(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
}

// TestVerbsCrash kills changes at random times: the table is in its state before or after the change, and remains
// usable. STOA_CRASHES is the number of times that each change is killed.
func TestVerbsCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	kills := 2
	if n, err := strconv.Atoi(os.Getenv("STOA_CRASHES")); err == nil {
		kills = n
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(21, 2))
	for _, v := range killedVerbs() {
		before, after, whole := 0, 0, time.Duration(0)
		for n := -1; n < kills; n++ { // the first one is not killed
			dir := v.made(t)
			cmd := exec.Command(self, "-test.run=^TestVerbsCrashHelper$", "-test.v")
			cmd.Env = append(os.Environ(), "STOA_CARBON_CRASH_VERB="+dir+"|"+v.name)
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			for seen, buf := "", make([]byte, 256); !strings.Contains(seen, "begin\n"); {
				n, err := out.Read(buf)
				if seen += string(buf[:n]); err != nil {
					t.Fatal(seen, err)
				}
			}
			at := time.Now()
			if n >= 0 {
				time.Sleep(time.Duration(r.Int64N(int64(whole) + 1)))
				cmd.Process.Kill()
			}
			if err := cmd.Wait(); n < 0 && err != nil {
				t.Fatal(err)
			}
			whole = max(whole, time.Since(at))
			if _, err := os.Stat(dir); err != nil && v.name == "rename" {
				dir += "-moved"
			}
			if v.left(t, dir, n) {
				after++
			} else {
				before++
			}
		}
		t.Logf("COUNT %s: %d kills in its %v; %d left the table as it was, %d as it is afterwards", v.name, kills,
			whole.Round(time.Millisecond), before, after)
	}
}

// made makes the table that the verb changes.
func (v *killedVerb) made(t *testing.T) string {
	if v.table != nil {
		return v.table(t)
	}
	return newOrders(t, carbon.TableSpec{Partition: []string{"day"}}, [2]int{0, 150}, [2]int{150, 300})
}

// left reports whether kill n left the table in its state after the change; any other state but the one before fails
// the test. The table must be healthy, and still usable. A negative n is a change that was not killed.
func (v *killedVerb) left(t *testing.T, dir string, n int) (after bool) {
	t.Helper()
	old := v.before
	if old == nil {
		old = span(0, 300)
	}
	got, state := ids(t, dir, external), v.was
	if v.is != nil {
		state = v.is(t, dir)
	}
	switch {
	case slices.Equal(got, v.after) && state == v.now:
		after = true
	case slices.Equal(got, old) && state == v.was && n >= 0:
	default:
		t.Fatalf("%s, killed %d: got %d rows and %v, want the %d of before and %v, or %d and %v", v.name, n, len(got),
			state, len(old), v.was, len(v.after), v.now)
	}
	c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{Opts: external})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Clean(t.Context(), stoa.CleanOptions{}); err != nil {
		t.Fatal(err)
	}
	if again := ids(t, dir, external); !slices.Equal(again, got) {
		t.Errorf("%s, cleaned: got %d rows, want %d", v.name, len(again), len(got))
	}
	if v.name != "rename --column" { // the orders have the old name
		more := orders(5000, 5010) // the table is still usable
		if _, err := c.Append(t.Context(), more.Schema(), once(more), stoa.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
		if more := ids(t, dir, external); len(more) != len(got)+10 {
			t.Errorf("%s, loaded again: got %d rows, want %d", v.name, len(more), len(got)+10)
		}
	}
	if found := faults(t, dir); len(found) > 0 {
		t.Errorf("%s, killed %d: verify found %v", v.name, n, found)
	}
	return after
}
