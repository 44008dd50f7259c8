package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"stoa/cmd/stoa/internal/cli"
)

// answered is what a worker answers to a split.
type answered struct {
	stream []byte
	doc    map[string]any
	line   []byte
}

func (a answered) status() int { return int(a.doc["status"].(float64)) }

// answers reads what a worker wrote, as docs/splits.md describes it.
func answers(t *testing.T, out []byte) (all []answered) {
	t.Helper()
	in := bufio.NewReader(bytes.NewReader(out))
	for {
		var a answered
		for first := true; ; first = false {
			var length [4]byte
			if _, err := io.ReadFull(in, length[:]); err == io.EOF && first {
				return all
			} else if err != nil {
				t.Fatalf("answer %d: %v", len(all), err)
			}
			n := binary.LittleEndian.Uint32(length[:])
			if n == 0 {
				break
			}
			part := make([]byte, n)
			if _, err := io.ReadFull(in, part); err != nil {
				t.Fatalf("answer %d: %v", len(all), err)
			}
			a.stream = append(a.stream, part...)
		}
		var err error
		if a.line, err = in.ReadBytes('\n'); err != nil {
			t.Fatalf("answer %d: %v", len(all), err)
		}
		if err := json.Unmarshal(a.line, &a.doc); err != nil {
			t.Fatalf("answer %d: %v: %s", len(all), err, a.line)
		}
		all = append(all, a)
	}
}

// planOf returns the splits of a plan.
func planOf(t *testing.T, args ...string) (splits []string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if st := run(context.Background(), append([]string{"plan"}, args...), nil, &stdout, &stderr); st != 0 {
		t.Fatalf("plan %s: status %d: %s", args, st, &stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	return lines[1 : len(lines)-1]
}

// TestWorker: one process answers each split with the bytes and the status that a process of its own has for it,
// whatever the splits before it ended with.
func TestWorker(t *testing.T) {
	name, err := filepath.Abs("../../docs/json/scan.json")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.NewCompiler().Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	corpus, err := filepath.Abs("../../corpus")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	var lines []string
	for i := range 5000 {
		lines = append(lines, fmt.Sprintf("{\"n\":%d,\"t\":\"text %d\"}", i, i%7))
	}
	if err := os.WriteFile("n.jsonl", []byte(strings.Join(lines, "\n")), 0o666); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	if st := run(context.Background(), []string{"convert", "-q", "n.jsonl", "-o", "changed.parquet"}, nil, io.Discard,
		&stderr); st != 0 {
		t.Fatal(&stderr)
	}
	splits := planOf(t, corpus+"/carbon/2.3.0/managed/managed1", "--target-size", "1KB", "-w", "id > 100")
	splits = append(splits, planOf(t, corpus+"/kudu/1.18.1/synthetic/bad_one_byte_flipped.cfile")...)
	splits = append(splits, planOf(t, "n.jsonl", "-c", "t")...)
	splits = append(splits, planOf(t, "changed.parquet")...)
	splits = append(splits, `{"stoa_split":99}`, `no split`, `{}`)
	splits = append(splits, planOf(t, corpus+"/carbon/2.3.0/managed/managed1", "--target-size", "1KB")...)
	if err := os.WriteFile("changed.parquet", []byte("PAR1"), 0o666); err != nil {
		t.Fatal(err)
	}
	seen := map[int]int{}
	for _, policy := range []string{"fail", "skip-rows"} {
		var out, errs bytes.Buffer
		if st := run(context.Background(), []string{"scan", "--splits", "-", "--damaged", policy},
			strings.NewReader(strings.Join(splits, "\n\n")+"\n"), &out, &errs); st != 0 || errs.Len() > 0 {
			t.Fatalf("status %d: %s", st, &errs)
		}
		all := answers(t, out.Bytes())
		if len(all) != len(splits) {
			t.Fatalf("%d answers to %d splits", len(all), len(splits))
		}
		for i, a := range all {
			var alone, said bytes.Buffer
			st := run(context.Background(), []string{"scan", "--split", "-", "--damaged", policy},
				strings.NewReader(splits[i]), &alone, &said)
			checkWork(t, a, st, splits[i], policy)
			if a.status() != st || !bytes.Equal(a.stream, alone.Bytes()) {
				t.Errorf("%s, split %d: status %d and %d bytes; alone %d and %d: %s", policy, i, a.status(),
					len(a.stream), st, alone.Len(), &said)
			}
			seen[st]++
			n, err := judge(a.stream)
			if whole := st == cli.StatusFine || st == cli.StatusDamage; whole != (err == nil) ||
				whole && n != int64(a.doc["rows"].(float64)) || whole == (a.doc["error"] != nil) {
				t.Errorf("%s, split %d: status %d, %d rows, %v: %s", policy, i, st, n, err, a.line)
			}
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.line))
			if err == nil {
				err = schema.Validate(v)
			}
			if err != nil {
				t.Errorf("%s\n%v", a.line, err)
			}
		}
	}
	for st, least := range map[int]int{cli.StatusFine: 10, cli.StatusCannot: 2, cli.StatusUse: 6, cli.StatusDamage: 1} {
		if seen[st] < least {
			t.Errorf("status %d: %d splits, expected at least %d", st, seen[st], least)
		}
	}
}

// checkWork checks what an answer says of pages and bytes: a process of its own says the same with --work, on a line.
func checkWork(t *testing.T, a answered, st int, split, policy string) {
	t.Helper()
	var out, said bytes.Buffer
	got := run(context.Background(), []string{"scan", "--split", "-", "--damaged", policy, "--work"},
		strings.NewReader(split), &out, &said)
	k := strings.Index("\n"+said.String(), "\n{\"stoa_work\":1,")
	if got != st || !bytes.Equal(out.Bytes(), a.stream) || k < 0 && st != cli.StatusUse && st != cli.StatusCannot {
		t.Errorf("--work: status %d, want %d: %s", got, st, &said)
	}
	if k < 0 {
		return
	}
	line, _, _ := strings.Cut(said.String()[k:], "\n")
	var w map[string]any
	if err := json.Unmarshal([]byte(line), &w); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(w, a.doc["work"]) || w["bytes"].(float64) == 0 {
		t.Errorf("alone: %s, the worker: %v", line, a.doc["work"])
	}
}

// slowly is input of which one line a time is there, after what it leads to was read.
type slowly struct {
	lines []string
	out   *bytes.Buffer
	had   []int
}

func (s *slowly) Read(p []byte) (int, error) {
	s.had = append(s.had, s.out.Len())
	if len(s.lines) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.lines[0]+"\n")
	s.lines = s.lines[1:]
	return n, nil
}

// TestWorkerAnswersAtOnce: an answer is complete before the next split is read, a split that is cut off is refused, and
// a reader that goes away ends the worker without a word.
func TestWorkerAnswersAtOnce(t *testing.T) {
	splits := planOf(t, "../../corpus/carbon/2.3.0/managed/managed1", "--target-size", "1KB")
	var out, errs bytes.Buffer
	in := &slowly{lines: splits, out: &out}
	if st := run(context.Background(), []string{"scan", "--splits", "-"}, in, &out, &errs); st != 0 {
		t.Fatal(&errs)
	}
	for i := 1; i < len(in.had); i++ {
		if n := len(answers(t, out.Bytes()[:in.had[i]])); n != i {
			t.Errorf("before split %d was read, %d answers were there", i, n)
		}
	}
	cut := strings.NewReader(splits[0] + "\n" + splits[1])
	out.Reset()
	st := run(context.Background(), []string{"scan", "--splits", "-"}, cut, &out, &errs)
	if st != cli.StatusUse || len(answers(t, out.Bytes())) != 1 || !strings.Contains(errs.String(), "within a split") {
		t.Errorf("status %d: %s", st, &errs)
	}
	errs.Reset()
	all := strings.NewReader(strings.Join(splits, "\n") + "\n")
	st = run(context.Background(), []string{"scan", "--splits", "-"}, all,
		&full{2000, &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}}, &errs)
	if errs.Len() > 0 || st != 0 {
		t.Errorf("the reader went away: status %d, %q", st, &errs)
	}
	errs.Reset()
	st = run(context.Background(), []string{"scan", "--splits", "-"}, strings.NewReader(splits[0]+"\n"),
		&full{2000, errors.New("no space")}, &errs)
	if st != cli.StatusCannot || errs.Len() == 0 {
		t.Errorf("the output is full: status %d, %q", st, &errs)
	}
}
