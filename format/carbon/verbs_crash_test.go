package carbon_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
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

// killedVerb is a change of a table of the orders 0 to 300, partitioned by day, with the ids that the table has
// afterwards.
type killedVerb struct {
	name  string
	after []int32
	do    func(ctx context.Context, c *stoa.Changer) error
}

// killedDay returns the partition of the orders whose number modulo 5 is 1.
func killedDay() format.PartitionValues {
	day := "2019-04-15"
	return format.PartitionValues{"day": &day}
}

func killedVerbs() []killedVerb {
	all := span(0, 300)
	others := slices.DeleteFunc(slices.Clone(all), func(id int32) bool { return id%5 == 1 })
	appends := func(b arrow.RecordBatch, o stoa.AppendOptions) func(ctx context.Context, c *stoa.Changer) error {
		return func(ctx context.Context, c *stoa.Changer) error {
			_, err := c.Append(ctx, b.Schema(), once(b), o)
			return err
		}
	}
	return []killedVerb{
		{"truncate", nil, func(ctx context.Context, c *stoa.Changer) error {
			_, err := c.Truncate(ctx, stoa.TruncateOptions{})
			return err
		}},
		{"drop-partition", others, func(ctx context.Context, c *stoa.Changer) error {
			_, err := c.DropPartition(ctx, stoa.PartitionOptions{Partition: killedDay()})
			return err
		}},
		{"load --overwrite", span(1000, 3000), appends(orders(1000, 3000), stoa.AppendOptions{Overwrite: true})},
		{"load --overwrite --partition", append(slices.Clone(others), 1001),
			appends(orders(1001, 1002), stoa.AppendOptions{Overwrite: true, Partition: killedDay()})},
		{"merge", span(0, 2300), func(ctx context.Context, c *stoa.Changer) error {
			b := orders(100, 2300)
			_, err := c.Merge(ctx, b.Schema(), once(b), stoa.MergeOptions{Key: []string{"id"}})
			return err
		}},
		{"rename --column", all, func(ctx context.Context, c *stoa.Changer) error {
			o := stoa.AlterColumnOptions{}
			o.Column, o.Name = "name", "title"
			return c.AlterColumn(ctx, o)
		}},
	}
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
		c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{})
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
	spec := carbon.TableSpec{Partition: []string{"day"}}
	for _, v := range killedVerbs() {
		before, after, whole := 0, 0, time.Duration(0)
		for n := -1; n < kills; n++ { // the first one is not killed
			dir := newOrders(t, spec, [2]int{0, 150}, [2]int{150, 300})
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
			got := ids(t, dir, nil)
			switch {
			case slices.Equal(got, v.after):
				after++
			case slices.Equal(got, span(0, 300)) && n >= 0:
				before++
			default:
				t.Fatalf("%s, killed %d: got %d rows, want the 300 of before, or %d", v.name, n, len(got), len(v.after))
			}
			if _, err := carbon.Clean(t.Context(), dir, false); err != nil {
				t.Fatal(err)
			}
			if again := ids(t, dir, nil); !slices.Equal(again, got) {
				t.Errorf("%s, cleaned: got %d rows, want %d", v.name, len(again), len(got))
			}
			if v.name != "rename --column" {
				loadOrders(t, dir, 5000, 5010) // the table is still usable
				if more := ids(t, dir, nil); len(more) != len(got)+10 {
					t.Errorf("%s, loaded again: got %d rows, want %d", v.name, len(more), len(got)+10)
				}
			}
			healthy(t, dir)
		}
		t.Logf("COUNT %s: %d kills in its %v; %d left the table as it was, %d as it is afterwards", v.name, kills,
			whole.Round(time.Millisecond), before, after)
	}
}
