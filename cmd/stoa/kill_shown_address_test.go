//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa/internal/effort"
	"stoa/store/remote"
)

// TestShownTablesStay kills the writing of a lake at an address at each of its requests. From when a catalogue is
// there, any engine may use the table: clean removes only the mark then, whether or not somebody has used it, and a
// resumed run finishes it, over the same files. Before, clean removes all of it, and the resumed run names the command.
func TestShownTablesStay(t *testing.T) {
	in := filepath.Join(t.TempDir(), "in")
	if err := os.Mkdir(in, 0o777); err != nil {
		t.Fatal(err)
	}
	text, rows := numbered(0, 7)
	if err := os.WriteFile(in+"/t.jsonl", []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"iceberg", "delta", "iceberg,delta"} {
		s := &shown{args: []string{"migrate", in, "-o", "s3://bucket/w", "--to", to, "-q", "--opt",
			"property=owner=a=b"}, to: to, want: rows, seen: map[string]int{}}
		s3, _ := emptyBucket(t)
		all := (&killer{S3: s3}).run(t, 0, false, s.args...)
		for at := int64(1); at <= all; at++ {
			if testing.Short() && at%5 != 0 || !testing.Short() && at < all-10 && at%int64(effort.Step(7, 5)) != 0 {
				continue // the catalogues appear in the end
			}
			for k := range 4 {
				s.killed(t, at, k%2 > 0, k/2 > 0)
			}
		}
		t.Log(to, s.seen)
		if len(s.seen) == 0 || !testing.Short() && (s.seen["refused"] == 0 || s.seen["taken as done"] == 0 ||
			to == "iceberg,delta" && (s.seen["completed"] == 0 || s.seen["told"] == 0)) {
			t.Errorf("%s: this proves nothing: %v", to, s.seen)
		}
	}
}

// shown is a run that is killed, and what it writes.
type shown struct {
	args []string
	to   string
	want []string
	seen map[string]int
}

// killed kills the run at a request, before or after the answer. If another engine is to use the table, and else if
// there is none yet, clean follows, and always a resumed run.
func (s *shown) killed(t *testing.T, at int64, answer, used bool) {
	s3, dir := emptyBucket(t)
	table := filepath.Join(dir, "w/t")
	k := &killer{S3: s3}
	k.run(t, at, answer, s.args...)
	found, _ := filepath.Glob(table + "/metadata/*.metadata.json")
	logs, _ := filepath.Glob(table + "/_delta_log/*.json")
	n := len(found) + len(logs)
	what := fmt.Sprintf("%s, killed at %d (answered %t), %d catalogues, used %t", s.to, at, answer, n, used)
	if used = used && len(found) > 0; used {
		use(t, found[0])
	}
	before := filesOf(t, table)
	_, marked := before[remote.Unfinished]
	delete(before, remote.Unfinished)
	if n == 0 && marked {
		asS3(t, s3)
		s.seen["refused"]++
		if got := said("s3://bucket", append(s.args, "--resume")...); !strings.Contains(got,
			"stoa clean BUCKET/w/t --older-than") {
			t.Errorf("%s: no command is named: %s", what, got)
		}
	}
	if n == 0 || used {
		k.run(t, 0, false, "clean", "s3://bucket/w", "--older-than", "1ns")
		after := filesOf(t, table)
		if n == 0 && len(after) > 0 || n > 0 && !maps.EqualFunc(after, before, bytes.Equal) {
			t.Errorf("%s: clean leaves %q of %q", what, slices.Sorted(maps.Keys(after)),
				slices.Sorted(maps.Keys(before)))
		}
	}
	asS3(t, s3)
	got := said("s3://bucket", append(s.args, "--resume")...)
	after := filesOf(t, table)
	for name, b := range before {
		if n > 0 && !bytes.Equal(after[name], b) {
			t.Errorf("%s: %s was removed or replaced", what, name)
		}
	}
	if half := s.to == "iceberg,delta" && n == 1; half && used {
		s.seen["told"]++
		if !strings.HasSuffix(got, "status: 1") || !strings.Contains(got, "alone") {
			t.Errorf("%s: %s", what, got)
		}
		return
	} else if half {
		s.seen["completed"]++
	} else if n > 0 && marked {
		s.seen["taken as done"]++
	}
	if !strings.HasSuffix(got, "status: 0") || after[remote.Unfinished] != nil {
		t.Errorf("%s: %s", what, got)
	}
	for _, kind := range strings.Split(s.to, ",") {
		s.read(t, what, kind)
	}
}

// read verifies the table and compares its rows.
func (s *shown) read(t *testing.T, what, kind string) {
	t.Helper()
	for _, args := range [][]string{{"verify", "--deep", "-q"}, {"cat", "-f", "jsonl"}, {"meta"}} {
		got := said("s3://bucket", append(args, "--from", kind, "s3://bucket/w/t")...)
		text, _, _ := strings.Cut(got, "\nstderr:")
		rows := strings.Fields(strings.ReplaceAll(text, " ", "_"))
		slices.Sort(rows)
		want := slices.Clone(s.want)
		for i := range want {
			want[i] = strings.ReplaceAll(want[i], " ", "_")
		}
		if !strings.HasSuffix(got, "status: 0") ||
			args[0] == "cat" && !slices.Equal(rows, slices.DeleteFunc(want, func(s string) bool { return s == "" })) ||
			args[0] == "meta" && s.args != nil && !strings.Contains(text, "a=b") {
			t.Errorf("%s: %s of %s: %s", what, args[0], kind, got)
		}
	}
}

// use is what another engine does: it commits new metadata of a table.
func use(t *testing.T, metadata string) {
	t.Helper()
	b, err := os.ReadFile(metadata)
	if err == nil {
		err = os.WriteFile(filepath.Dir(metadata)+"/00001-0c3b5d6e-7f80-4a1b-9c2d-3e4f5a6b7c8d.metadata.json", b, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// filesOf returns the files of a directory by their names in it.
func filesOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	if _, err := os.Stat(dir); err != nil {
		return out
	}
	for _, name := range keysOf(t, dir) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) { // the store is still at the last request of a killed process
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		out[name] = b
	}
	return out
}

// TestOneShownTable: so it is for the conversion of one table, which records nothing of it.
func TestOneShownTable(t *testing.T) {
	in := filepath.Join(t.TempDir(), "t.jsonl")
	text, rows := numbered(0, 7)
	if err := os.WriteFile(in, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	s := &shown{to: "iceberg,delta", want: rows, seen: map[string]int{}}
	args := []string{"convert", in, "-o", "s3://bucket/w/t", "--to", s.to, "-q"}
	s3, _ := emptyBucket(t)
	all := (&killer{S3: s3}).run(t, 0, false, args...)
	for at := max(1, all-8); at <= all; at++ {
		s3, dir := emptyBucket(t)
		k := &killer{S3: s3}
		k.run(t, at, false, args...)
		found, _ := filepath.Glob(dir + "/w/t/metadata/*.metadata.json")
		logs, _ := filepath.Glob(dir + "/w/t/_delta_log/*.json")
		what := fmt.Sprintf("killed at %d of %d, %d and %d catalogues", at, all, len(found), len(logs))
		before := filesOf(t, dir+"/w/t")
		if before[remote.Unfinished] == nil {
			continue
		}
		s.seen[fmt.Sprint(len(found)+len(logs))]++
		asS3(t, s3)
		if got := said("s3://bucket", append(args, "--resume")...); len(found) == 0 {
			if !strings.HasSuffix(got, "status: 1") || !strings.Contains(got, "--older-than") {
				t.Errorf("%s: %s", what, got)
			}
			continue
		} else if !strings.HasSuffix(got, "status: 0") {
			t.Errorf("%s: %s", what, got)
		}
		after := filesOf(t, dir+"/w/t")
		for name, b := range before {
			if name != remote.Unfinished && !bytes.Equal(after[name], b) {
				t.Errorf("%s: %s was removed or replaced", what, name)
			}
		}
		s.read(t, what, "iceberg")
		s.read(t, what, "delta")
	}
	if t.Log(s.seen); s.seen["0"] == 0 || s.seen["1"] == 0 || s.seen["2"] == 0 {
		t.Error("this proves nothing")
	}
}
