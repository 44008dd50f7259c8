package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestServersOfOthersStay: directories of a master or a tablet server, or files of these names, that no run has
// recorded stay as they are, with any verb, in a new run and in one that is resumed: they are named, nothing else is
// written, and the status is not 0. What a run has recorded is gone on with.
func TestServersOfOthersStay(t *testing.T) {
	mine := []byte("what somebody else has written\n")
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	writeFiles(t, in, map[string][]byte{"one.csv": []byte("x\n1\n2\n")})
	for i, verb := range [][]string{{"rescue"}, {"convert", "--all"}, {"recover", "--all"}} {
		args := append(slices.Clone(verb), "--to", "kudu-fs", "--opt", "key=x", in, "-o")
		for _, name := range []string{"master", "master/wal/instance", "tserver", "tserver/data/data/block"} {
			for _, flags := range [][]string{nil, {"--resume"}} {
				out := filepath.Join(dir, "out", string(rune('a'+i)), strings.ReplaceAll(name, "/", "-"))
				writeFiles(t, out, map[string][]byte{name: mine})
				before := filesBelow(t, out)
				status, text := printedBy(append(append(slices.Clone(args), out), flags...)...)
				first, _, _ := strings.Cut(name, "/")
				if report, err := os.ReadFile(filepath.Join(out, "report.txt")); verb[0] == "rescue" && (err != nil ||
					!strings.Contains(strings.Join(strings.Fields(string(report)), " "), "one.csv NOT WHOLE") ||
					!strings.Contains(strings.Join(strings.Fields(string(report)), " "), first+" is there already")) {
					t.Errorf("%v %v, %s: the report: %v: %s", verb, flags, name, err, report)
				}
				if status == 0 || !maps.EqualFunc(before, filesBelow(t, out), slices.Equal) || !strings.Contains(
					strings.Join(strings.Fields(text), " "), filepath.Join(out, first)+" is there already") {
					t.Errorf("%v %v, %s: status %d, files %v: %s", verb, flags, name, status,
						slices.Sorted(maps.Keys(filesBelow(t, out))), text)
				}
			}
		}
		own := filepath.Join(dir, "own"+verb[0])
		for _, flags := range [][]string{nil, {"--resume"}} {
			if status, text := printedBy(append(append(slices.Clone(args), own), flags...)...); status != 0 ||
				countOf(t, own) != 2 {
				t.Errorf("%v %v: status %d: %s", verb, flags, status, text)
			}
		}
	}
}

// TestServersWithoutRecord: if the record of a run is gone, its servers are refused, with --force its tables, by name,
// and nothing of them changes; what the refusal says to do writes all again. Whether or not the run that was refused
// was killed then, it leaves nothing that is in the way.
func TestServersWithoutRecord(t *testing.T) {
	cluster, rows := fewTables(t, "d_raw", "key_all")
	for _, verb := range [][]string{{"rescue"}, {"convert", "--all"}} {
		dir := t.TempDir()
		in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
		writeFiles(t, in, cluster)
		args := append(slices.Clone(verb), in, "-o", out, "--to", "kudu-fs")
		if status, text := printedBy(args...); status != 0 {
			t.Fatalf("%v: status %d: %s", verb, status, text)
		}
		if err := os.Remove(filepath.Join(out, ".stoa-convert.json")); err != nil {
			t.Fatal(err)
		}
		servers := func() map[string][]byte {
			all := filesBelow(t, out)
			maps.DeleteFunc(all, func(name string, _ []byte) bool { return !strings.HasPrefix(name, "tserver/") })
			return all
		}
		before := servers()
		for _, flags := range [][]string{nil, {"--resume"}, {"--resume", "--force"}} {
			status, text := printedBy(append(slices.Clone(args), flags...)...)
			text = strings.Join(strings.Fields(text), " ")
			for _, name := range []string{"master", "tserver"} {
				if !strings.Contains(text, filepath.Join(out, name)) {
					t.Errorf("%v %v: it does not say what to move: %s", verb, flags, text)
				}
			}
			if status == 0 || !strings.Contains(text, "away and run this again") ||
				!maps.EqualFunc(before, servers(), bytes.Equal) {
				t.Errorf("%v %v: status %d: %s", verb, flags, status, text)
			}
		}
		for _, name := range []string{"master", "tserver"} {
			if err := os.Rename(filepath.Join(out, name), filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		if status, text := printedBy(append(args, "--resume")...); status != 0 {
			t.Errorf("%v: after moving them away: status %d: %s", verb, status, text)
		}
		for table, n := range rows {
			if _, text := printedBy("count", out+"#"+table); strings.TrimSpace(text) != fmt.Sprint(n) {
				t.Errorf("%v: %s: %s rows, want %d", verb, table, text, n)
			}
		}
	}
}

// TestServersPutThereSince: directories of a master or a tablet server that somebody has put in place of those of an
// earlier run, since it ended or was killed while it made them, and files put into its master, stay as they are, and
// are named. When they are moved away, the run goes on, and writes a master.
func TestServersPutThereSince(t *testing.T) {
	cluster, rows := fewTables(t, "d_raw", "key_all")
	one, _ := fewTables(t, "d_raw")
	others, _ := deadCluster(t)
	maps.DeleteFunc(others, func(name string, _ []byte) bool { return !strings.HasPrefix(name, "master/") })
	for _, x := range []struct {
		name   string
		killed bool
		mine   map[string][]byte
	}{
		{"a master", false, others},
		{"a master", true, others},
		{"a file", false, map[string][]byte{"master/notes.txt": []byte("mine\n")}},
		{"a file", true, map[string][]byte{"master/notes.txt": []byte("mine\n")}},
	} {
		for _, verb := range [][]string{{"rescue"}, {"convert", "--all"}} {
			dir := t.TempDir()
			in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
			writeFiles(t, in, one)
			args := append(slices.Clone(verb), in, "-o", out, "--to", "kudu-fs")
			if status, text := printedBy(args...); status != 0 {
				t.Fatalf("%v: status %d: %s", verb, status, text)
			}
			if x.killed {
				killedWhileAssembling(t, filepath.Join(out, ".stoa-convert.json"))
			}
			if x.killed || len(x.mine) > 1 {
				if err := os.RemoveAll(filepath.Join(out, "master")); err != nil {
					t.Fatal(err)
				}
			}
			writeFiles(t, out, x.mine)
			if !x.killed {
				if status, text := printedBy(append(args, "--resume")...); status == 0 {
					t.Errorf("%v, %s: with nothing else to do: status %d: %s", verb, x.name, status, text)
				}
			}
			writeFiles(t, in, cluster)
			status, text := printedBy(append(args, "--resume")...)
			for name, b := range x.mine {
				if got, err := os.ReadFile(filepath.Join(out, name)); err != nil || !bytes.Equal(got, b) {
					t.Fatalf("%v, %s, killed %t: status %d: %s: %v: %s", verb, x.name, x.killed, status, name, err,
						text)
				}
			}
			if status == 0 || !strings.Contains(strings.Join(strings.Fields(text), " "),
				filepath.Join(out, "master")+" is not what an earlier run made") {
				t.Errorf("%v, %s, killed %t: status %d: %s", verb, x.name, x.killed, status, text)
			}
			if err := os.Rename(filepath.Join(out, "master"), filepath.Join(dir, "mine")); err != nil {
				t.Fatal(err)
			}
			status, text = printedBy(append(args, "--resume")...)
			if _, err := os.Stat(filepath.Join(out, "master", "instance")); status != 0 && !x.killed || err != nil {
				t.Errorf("%v, %s, killed %t: moved away: status %d, %v: %s", verb, x.name, x.killed, status, err, text)
			}
			for table, n := range rows {
				if _, text := printedBy("count", out+"#"+table); strings.TrimSpace(text) != fmt.Sprint(n) {
					t.Errorf("%v, %s, killed %t: %s: %s rows, want %d", verb, x.name, x.killed, table, text, n)
				}
			}
		}
	}
}

// TestServersThatAreGone: what somebody has removed of the servers that a run has made is written again by the next
// one, or is named if the rest cannot do without it.
func TestServersThatAreGone(t *testing.T) {
	cluster, rows := fewTables(t, "d_raw", "key_all")
	for _, verb := range [][]string{{"rescue"}, {"convert", "--all"}} {
		dir := t.TempDir()
		in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
		writeFiles(t, in, cluster)
		args := append(slices.Clone(verb), in, "-o", out, "--to", "kudu-fs")
		if status, text := printedBy(args...); status != 0 {
			t.Fatalf("%v: status %d: %s", verb, status, text)
		}
		for _, x := range []struct {
			gone   []string
			status int
		}{
			{[]string{"master"}, 0}, {[]string{"tserver"}, 2}, {[]string{"master"}, 0},
			{[]string{"master", "tserver"}, 0},
		} {
			for i, name := range x.gone {
				err := os.RemoveAll(filepath.Join(out, name))
				if err == nil && i == 1 { // an empty directory is gone, too
					err = os.Mkdir(filepath.Join(out, name), 0o755)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			status, text := printedBy(append(args, "--resume")...)
			if status != x.status || status != 0 && !strings.Contains(strings.Join(strings.Fields(text), " "),
				filepath.Join(out, "tserver")+" is gone") {
				t.Errorf("%v, %q gone: status %d: %s", verb, x.gone, status, text)
			}
			if status != 0 {
				continue
			}
			if _, err := os.Stat(filepath.Join(out, "master", "instance")); err != nil {
				t.Errorf("%v, %q gone: %v", verb, x.gone, err)
			}
			for table, n := range rows {
				if _, text := printedBy("count", out+"#"+table); strings.TrimSpace(text) != fmt.Sprint(n) {
					t.Errorf("%v, %q gone: %s: %s rows, want %d", verb, x.gone, table, text, n)
				}
			}
		}
	}
}

// killedWhileAssembling makes a state that of a run which was killed when it had taken all tables.
func killedWhileAssembling(t *testing.T, name string) {
	t.Helper()
	var doc map[string]any
	b, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(b, &doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	doc["assembling"], doc["finished"] = true, false
	for _, d := range doc["done"].([]any) {
		delete(d.(map[string]any), "taken")
	}
	if b, err = json.Marshal(doc); err == nil {
		err = os.WriteFile(name, b, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}
