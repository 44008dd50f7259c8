// Command plan measures how long plans of very many files and tablets take, and what a split costs beside its rows: the
// parts of the model in docs/splits.md.
//
// The files are names: behind each is the same file, so that only metadata is made. The tablets are those of a Kudu
// directory with two rows each. What a plan says of rows is checked; processor time is that of a process of its own.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/store"
)

var (
	files   = flag.Int("files", 1_000_000, "files of the first plan")
	tablets = flag.Int("tablets", 10_000, "tablets of the second one")
	rows    = flag.Int("rows", 2_000_000, "rows of the table that is scanned")
	command = flag.String("stoa", "stoa", "the command")
	child   = flag.String("child", "", "plan the files behind this one in this process, and print a line")
	write   = flag.String("write", "", "write a table with this name and -rows rows")
)

// each is how many rows a file has.
const each = 1000

func main() {
	flag.Parse()
	log.SetFlags(0)
	switch { // in processes of their own, so that the memory of each is its own
	case *child != "":
		check(planFiles(*child))
		return
	case *write != "":
		check(fill(*write, *rows))
		return
	}
	dir, err := os.MkdirTemp("", "plan")
	check(err)
	defer os.RemoveAll(dir)
	fmt.Println("| | wall | processor | memory | |\n|---|---|---|---|---|")
	check(many(dir))
	check(kudu(dir))
	check(scans(dir))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// table has a process write n rows of ten columns.
func table(name string, n int) error {
	self, err := os.Executable()
	if err == nil {
		err = exec.Command(self, "-write", name, "-rows", strconv.Itoa(n)).Run()
	}
	return err
}

func fill(name string, n int) error {
	fields := make([]arrow.Field, 10)
	for i := range fields {
		fields[i] = arrow.Field{Name: fmt.Sprintf("c%d", i), Type: arrow.PrimitiveTypes.Int64}
	}
	fields[9].Type = arrow.BinaryTypes.String
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	ctx := context.Background()
	w, err := stoa.Create(ctx, name, b.Schema(), stoa.CreateOptions{})
	for i := 0; err == nil && i < n; i++ {
		for c := range 9 {
			b.Field(c).(*array.Int64Builder).Append(int64(uint32(i*(c+1)) * 2654435761 >> 12))
		}
		b.Field(9).(*array.StringBuilder).Append("id-" + strconv.Itoa(i))
		if i == n-1 || i%65536 == 65535 {
			err = w.Write(ctx, b.NewRecordBatch())
		}
	}
	if err == nil {
		_, err = w.Close(ctx)
	}
	return err
}

// run runs a program and prints a line of the table.
func run(what string, input []byte, out io.Writer, program string, args ...string) (*exec.Cmd, error) {
	c := exec.Command(program, args...)
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(input), out, os.Stderr
	began := time.Now()
	err := c.Run()
	if err != nil {
		return c, fmt.Errorf("%s: %w", what, err)
	}
	usage := c.ProcessState.SysUsage().(*syscall.Rusage)
	fmt.Printf("| %s | %.2f s | %.2f s | %d MB |", what, time.Since(began).Seconds(), processor(c).Seconds(),
		usage.Maxrss>>10)
	return c, nil
}

// counter counts bytes.
type counter int64

func (n *counter) Write(p []byte) (int, error) {
	*n += counter(len(p))
	return len(p), nil
}

func processor(c *exec.Cmd) time.Duration {
	return c.ProcessState.UserTime() + c.ProcessState.SystemTime()
}

// many plans the files.
func many(dir string) error {
	one := filepath.Join(dir, "one.parquet")
	if err := table(one, each); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var out bytes.Buffer
	_, err = run(fmt.Sprintf("plan of %d files", *files), nil, &out, self, "-child", one, "-files",
		strconv.Itoa(*files))
	fmt.Printf(" %s |\n", bytes.TrimSpace(out.Bytes()))
	return err
}

// repeated is a directory t of names behind which is one file.
type repeated struct {
	one  string
	size int64
	tree store.Tree
}

func (r *repeated) info(i int) store.Info {
	return store.Info{Name: fmt.Sprintf("t/part-%07d.parquet", i), Size: r.size, Stamp: "1"}
}

func (r *repeated) Stat(_ context.Context, name string) (store.Info, error) {
	if name == "t" {
		return store.Info{Name: name, Dir: true}, nil
	}
	i, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(name, "t/part-"), ".parquet"))
	if err != nil || i >= *files {
		return store.Info{}, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return r.info(i), nil
}

func (r *repeated) Open(ctx context.Context, name string) (store.Source, error) {
	if info, err := r.Stat(ctx, name); err != nil || info.Dir {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return r.tree.Open(ctx, r.one)
}

func (r *repeated) List(_ context.Context, dir string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		for i := 0; dir == "t" && i < *files && yield(r.info(i), nil); i++ {
		}
	}
}

// planFiles plans the files as the verb does, and checks what the splits say.
func planFiles(one string) error {
	info, err := os.Stat(one)
	if err != nil {
		return err
	}
	tree := &repeated{one: one, size: info.Size(), tree: store.Local{}}
	ctx := context.Background()
	t, err := stoa.Open(ctx, "t", stoa.OpenOptions{Tree: tree, Planned: true})
	if err != nil {
		return err
	}
	var n, text, counted int64
	for s, err := range t.Plan(ctx, stoa.ScanSpec{Columns: []string{"c0", "c9"}}, 256<<20) {
		if err != nil {
			return err
		}
		line, _ := json.Marshal(s)
		n, text = n+1, text+int64(len(line))
		if counted += s.Rows; !s.Exact || s.Bounds["c0"].Min == nil || s.Bounds["c0"].Min.Int != 0 {
			return fmt.Errorf("split %d does not say what its rows are", s.N)
		}
	}
	if counted != int64(*files)*each {
		return fmt.Errorf("%d rows, expected %d", counted, int64(*files)*each)
	}
	fmt.Printf("%d splits, %d MB of text, %d rows counted\n", n, text>>20, counted)
	return t.Close()
}

// kudu plans a table of many tablets.
func kudu(dir string) error {
	rows, place := filepath.Join(dir, "rows.parquet"), filepath.Join(dir, "kudu")
	if err := table(rows, 2**tablets); err != nil {
		return err
	}
	convert := exec.Command(*command, "convert", "-q", "--no-check", rows, "--columns", "c9,c0", "--to", "kudu-fs",
		"--opt", "key=c9", "--opt", "table=t", "--opt", "block-manager=log", "--opt",
		fmt.Sprint("buckets=", *tablets), "-o", place)
	if out, err := convert.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	var out bytes.Buffer
	_, err := run(fmt.Sprintf("plan of %d tablets", *tablets), nil, &out, *command, "plan", place+"#t", "--memory",
		"4GiB")
	if err != nil {
		return err
	}
	var end struct {
		End          bool
		Splits, Rows int
	}
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	if err := json.Unmarshal(lines[len(lines)-1], &end); err != nil || !end.End || end.Rows != 2**tablets {
		return fmt.Errorf("the plan of the tablets ends with %+v, %v", end, err)
	}
	fmt.Printf(" %d splits, %d MB of text |\n", end.Splits, out.Len()>>20)
	return nil
}

// scans reads the splits of one table in each format, few and very many of them, by one worker.
func scans(dir string) error {
	from := filepath.Join(dir, "table.parquet")
	if err := table(from, *rows); err != nil {
		return err
	}
	for _, format := range []string{"parquet", "cfile", "carbon", "trevni", "redfile"} {
		place := from
		if format != "parquet" {
			place = filepath.Join(dir, format+map[string]string{"trevni": ".trv", "redfile": ".red"}[format])
			c := exec.Command(*command, "convert", "-q", "--no-check", from, "--to", format, "-o", place)
			if out, err := c.CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
		}
		var took [2]time.Duration
		var splits [2]int
		for i, target := range []string{"8MB", "200kB"} {
			plan, err := exec.Command(*command, "plan", place, "--target-size", target).Output()
			if err != nil {
				return err
			}
			lines := bytes.SplitAfter(plan, []byte("\n"))
			lines = lines[1 : len(lines)-2] // without the head, the end, and what follows its newline
			splits[i] = len(lines)
			what := fmt.Sprintf("scan of %s, %d splits", format, splits[i])
			var arrow counter
			c, err := run(what, bytes.Join(lines, nil), &arrow, *command, "scan", "--splits", "-",
				"--parallel", "1")
			if err != nil {
				return err
			}
			took[i] = processor(c)
			fmt.Printf(" %d MB stored, %d MB of Arrow |\n", stored(lines)>>20, arrow>>20)
		}
		if splits[1] > splits[0] {
			fmt.Printf("| each split more | | %.2f ms | | |\n",
				float64((took[1]-took[0]).Microseconds())/1000/float64(splits[1]-splits[0]))
		}
	}
	return nil
}

// stored returns the bytes that splits say they have.
func stored(lines [][]byte) (n int64) {
	for _, line := range lines {
		var s stoa.Split
		check(json.Unmarshal(line, &s))
		n += s.Bytes
	}
	return n
}
