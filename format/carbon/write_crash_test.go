package carbon_test

import (
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

	"stoa/format/carbon"
)

// TestCrashHelper is the process that TestCrash kills: it loads rows into the table STOA_CARBON_CRASH.
func TestCrashHelper(t *testing.T) {
	dir := os.Getenv("STOA_CARBON_CRASH")
	if dir == "" {
		t.Skip("TestCrash runs it in a process of its own")
	}
	b := orders(1000, 21000)
	fmt.Println("begin")
	o := carbon.LoadOptions{Tasks: 2, Opts: map[string]string{"page-rows": "500", "blocklet-size": "1"}}
	if way := os.Getenv("STOA_CARBON_CRASH_WAY"); way != "" {
		o.Opts = map[string]string{"version": "2", "blocklet-rows": "2000"}
		var err error
		if o.Dictionary, err = carbon.ParseDictionaryWay(way); err != nil {
			t.Fatal(err)
		}
		o.Dictionary.Rows = func() iter.Seq2[arrow.RecordBatch, error] {
			return func(yield func(arrow.RecordBatch, error) bool) { yield(b, nil) }
		}
	}
	l, err := carbon.BeginLoad(context.Background(), dir, b.Schema(), o)
	if err != nil {
		t.Fatal(err)
	}
	for i := int64(0); i < b.NumRows(); i += 1000 {
		if err := l.Write(t.Context(), b.NewSlice(i, i+1000)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// state names what a killed load left behind by the load's last step.
func state(dir string) string {
	has := func(pattern string) bool {
		l, _ := filepath.Glob(filepath.Join(dir, pattern))
		return len(l) > 0
	}
	status, _ := os.ReadFile(filepath.Join(dir, "Metadata", "tablestatus"))
	switch {
	case strings.Count(string(status), `"Success"`) == 2:
		return "6 part of the table"
	case has("Metadata/segments/1_*.segment"):
		return "5 segment file"
	case has("Fact/Part0/Segment_1/*.carbonindex*"):
		return "4 index"
	case has("Fact/Part0/Segment_1/*.carbondata"):
		return "3 data files"
	case has("Fact/Part0/Segment_1"):
		return "2 directory"
	case strings.Contains(string(status), "In Progress"):
		return "1 entry in tablestatus"
	}
	return "0 nothing"
}

// TestCrash kills loads at random times: the table is as it was before or after the load, and clean removes the rest.
// STOA_CRASHES is the number of crashes; the table is small, so that most of the load consists of steps that a crash
// may interrupt.
func TestCrash(t *testing.T) { crash(t, carbon.TableSpec{}, "") }

// TestCrashDictionaries is TestCrash for loads that write dictionaries, and files of format 2.
func TestCrashDictionaries(t *testing.T) {
	spec := carbon.TableSpec{Properties: map[string]string{"dictionary_include": "name,id"}}
	for _, way := range []string{"single-pass", "two-pass"} {
		t.Run(way, func(t *testing.T) { crash(t, spec, way) })
	}
}

func crash(t *testing.T, spec carbon.TableSpec, way string) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	kills := 6
	if n, err := strconv.Atoi(os.Getenv("STOA_CRASHES")); err == nil {
		kills = n
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	start := func(dir string) (*exec.Cmd, func() time.Time) {
		cmd := exec.Command(self, "-test.run=^TestCrashHelper$", "-test.v")
		cmd.Env = append(os.Environ(), "STOA_CARBON_CRASH="+dir, "STOA_CARBON_CRASH_WAY="+way)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		return cmd, func() time.Time { // when the load begins
			buf, seen := make([]byte, 256), ""
			for !strings.Contains(seen, "begin\n") {
				n, err := out.Read(buf)
				if seen += string(buf[:n]); err != nil {
					t.Fatal(seen, err)
				}
			}
			return time.Now()
		}
	}
	dir := newOrders(t, spec, [2]int{0, 100})
	cmd, begun := start(dir)
	at := begun()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	whole := time.Since(at)
	r := rand.New(rand.NewPCG(1, 2))
	before, after := span(0, 100), slices.Concat(span(0, 100), span(1000, 21000))
	states := map[string]int{}
	between := 0
	// three quarters of the kills must fall between the first and the last write
	for n := 0; n < kills || between < kills*3/4 && n < 3*kills; n++ {
		dir := newOrders(t, spec, [2]int{0, 100})
		cmd, begun := start(dir)
		begun()
		time.Sleep(time.Duration(r.Int64N(int64(whole))))
		cmd.Process.Kill()
		cmd.Wait() // its error only reports the kill
		s := state(dir)
		if states[s]++; s[0] > '0' && s[0] < '6' {
			between++
		}
		want := before
		if s[0] == '6' {
			want = after
		}
		if got := ids(t, dir, nil); !slices.Equal(got, want) {
			t.Errorf("%s: got %d rows", s, len(got))
		}
		if _, err := carbon.Clean(t.Context(), dir, false); err != nil {
			t.Error(err)
		}
		if left, err := carbon.Clean(t.Context(), dir, true); err != nil || len(left.Files) > 0 {
			t.Errorf("%s: leftovers: %v, %v", s, left.Files, err)
		}
		if l, _ := filepath.Glob(filepath.Join(dir, "Fact/Part0/Segment_1")); (len(l) > 0) != (s[0] == '6') {
			t.Errorf("%s: %v", s, l)
		}
		if got := ids(t, dir, nil); !slices.Equal(got, want) {
			t.Errorf("%s, cleaned: got %d rows", s, len(got))
		}
		loadOrders(t, dir, 100, 110) // the table is still usable
		if got := ids(t, dir, nil); len(got) != len(want)+10 {
			t.Errorf("%s, loaded again: got %d rows", s, len(got))
		}
		healthy(t, dir)
	}
	t.Logf("COUNT %s%d loads killed between their first and last write, a load takes %v; what all that were "+
		"killed left: %v", strings.TrimLeft(way+" ", " "), between, whole.Round(time.Millisecond), states)
}
