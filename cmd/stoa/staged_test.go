package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPhasesTakeNoOtherFlags: a phase of a load refuses the flags that it would ignore, a dry run among them, and then
// neither the table nor the job changes. A table with staged rows is neither dropped nor renamed.
func TestPhasesTakeNoOtherFlags(t *testing.T) {
	dir := t.TempDir()
	table, schema, rows := filepath.Join(dir, "t"), filepath.Join(dir, "schema"), filepath.Join(dir, "rows.jsonl")
	write(t, schema, "id int\n")
	write(t, rows, `{"id":1}`+"\n")
	do(t, "create", table, "--schema", schema)
	do(t, "load", table, rows)
	do(t, "load", table, rows, "--stage", "j", "--task", "0", "--overwrite")
	state := func() string {
		var b strings.Builder
		err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() && !strings.Contains(name, "LockFiles") {
				text, failed := os.ReadFile(name)
				b.WriteString(name + "\n" + string(text) + "\n")
				err = failed
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	before := state()
	stages := []string{"load", table, rows, "--stage", "k", "--task", "0"}
	commit := []string{"load", table, "--commit", "j", "--tasks", "1"}
	abort, older := []string{"load", table, "--abort", "j"}, []string{"load", table, "--abort-older", "1ns"}
	for _, c := range []struct {
		args   []string
		status string
	}{
		{append(stages, "--dry-run"), "2"}, {append(commit, "--dry-run"), "2"}, {append(abort, "--dry-run"), "2"},
		{append(older, "--dry-run"), "2"}, {append(stages, "--bad-action", "ignore"), "2"},
		{append(stages, "--bad-records", filepath.Join(dir, "bad.jsonl")), "2"}, {append(commit, "--overwrite"), "2"},
		{append(commit, "--partition", "p=1"), "2"}, {append(commit, "--where", "id = 1"), "2"},
		{append(abort, "--overwrite"), "2"}, {append(older, "--opt", "nulls=merge"), "2"},
		{[]string{"drop", table, "--yes"}, "2"}, {[]string{"drop", table, "--dry-run"}, "2"},
		{[]string{"rename", table, filepath.Join(dir, "u")}, "2"},
	} {
		if told := said(dir, c.args...); !strings.HasSuffix(told, "status: "+c.status) || state() != before {
			t.Errorf("%q: expected status %s, and nothing changed: %s", c.args, c.status, told)
		}
	}
	do(t, commit...)
	if out := do(t, "cat", table, "-f", "jsonl"); strings.TrimSpace(out) != `{"id":1}` {
		t.Errorf("after the commit of an overwriting job: %s", out)
	}
	do(t, "drop", table, "--yes")
}

// TestOldDatesInSegmentsOfRows: dates and times before 15 October 1582 in a segment of rows are those that were loaded,
// and a load that fails leaves no file of one.
func TestOldDatesInSegmentsOfRows(t *testing.T) {
	dir := t.TempDir()
	table, schema, rows := filepath.Join(dir, "t"), filepath.Join(dir, "schema"), filepath.Join(dir, "rows.jsonl")
	const text = `{"id":1,"d":"1500-01-01","ts":"1500-01-01T00:00:00Z"}
{"id":2,"d":"0001-01-01","ts":"0001-01-01T00:00:00Z"}
{"id":3,"d":"1582-10-15","ts":"1582-10-14T00:00:00Z"}
`
	write(t, schema, "id int\nd date\nts timestamp\n")
	write(t, rows, text)
	do(t, "create", table, "--schema", schema, "--property", "streaming=true")
	empty := do(t, "cat", table, "-f", "jsonl")
	wrong := filepath.Join(dir, "wrong.jsonl")
	write(t, wrong, text+`{"id":4,"d":"99999-01-01"}`+"\n")
	if told := said(dir, "load", table, wrong, "--opt", "layout=rows"); strings.HasSuffix(told, "status: 0") {
		t.Error(told)
	}
	if got := do(t, "cat", table, "-f", "jsonl"); got != empty {
		t.Errorf("after a load that failed: %s", got)
	}
	if left, _ := filepath.Glob(filepath.Join(table, "Fact", "Part0", "Segment_*", "*")); len(left) > 0 {
		t.Errorf("a load that failed leaves %q", left)
	}
	do(t, "load", table, rows, "--opt", "layout=rows")
	if got := do(t, "cat", table, "-f", "jsonl"); got != text {
		t.Errorf("%s", got)
	}
	do(t, "compact", table, "--close-streaming")
	if got := do(t, "cat", table, "-f", "jsonl"); got != text {
		t.Errorf("after the hand-off: %s", got)
	}
}
