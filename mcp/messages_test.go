package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestNoMessages: lines that are no messages, or are too long, get an answer, and the server goes on; no call writes.
func TestNoMessages(t *testing.T) {
	const place = corpus + "carbon/2.3.0/managed/managed_del"
	before := listing(t, place)
	cmd := exec.Command(os.Args[0], place)
	cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1", "GOMEMLIMIT=512MiB")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	answers := bufio.NewReader(out)
	id := 0
	alive := func(after string) {
		id++
		fmt.Fprintf(in, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"ping\"}\n", id)
		for {
			line, err := answers.ReadBytes('\n')
			if err != nil {
				t.Fatalf("after %.60q: %v, and said %s", after, err, said.String())
			}
			var m struct {
				ID     any
				Result any
			}
			if err := json.Unmarshal(line, &m); err != nil {
				t.Fatalf("after %.60q: %v: %.200s", after, err, line)
			}
			if m.ID == float64(id) && m.Result != nil {
				return
			}
		}
	}
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2025-06-18",`+
		`"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	call := `{"jsonrpc":"2.0","id":"b","method":"tools/call","params":`
	for _, line := range []string{"", "\x00\xff\xfe{{{", "not json", "[]", "[1,2]", `{}`, `{"id":3,"method":"ping"}`,
		`[{"jsonrpc":"2.0","id":5,"method":"ping"}]`, `{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1e400,"method":"ping"}`, `{"jsonrpc":"2.0","id":null,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":"c","result":{}}`, `{"jsonrpc":"2.0","id":"b","method":"tools/delete"}`,
		`{} {}`, strings.Repeat("[", 1<<18), call + `{"name":"rm","arguments":{}}}`,
		call + `{"name":"ls","arguments":7}}`, call + `{"name":"ls","arguments":{"output":"x"}}}`,
		call + `{"name":"head","arguments":{"table":"\ud800"}}}`,
		call + `{"name":"ls","arguments":` + strings.Repeat("[", 1<<17) + strings.Repeat("]", 1<<17) + `}}`,
		call + `{"name":"head","arguments":{"table":"` + strings.Repeat("a", 32<<20) + `"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`} {
		fmt.Fprintln(in, line)
		alive(line)
	}
	in.Close()
	if err := cmd.Wait(); err != nil || said.Len() > 0 {
		t.Errorf("at the end: %v: %s", err, said.String())
	}
	if after := listing(t, place); after != before {
		t.Errorf("the place changed from\n%s\nto\n%s", before, after)
	}
}

// listing returns the names and sizes below a directory.
func listing(t *testing.T, dir string) string {
	t.Helper()
	out, err := exec.Command("find", dir, "-printf", "%p %s %T@\n").Output()
	if err != nil {
		t.Skip("find with -printf is not here")
	}
	return string(out)
}

// TestLongArguments: arguments that no question needs are refused at once, whatever they would cost.
func TestLongArguments(t *testing.T) {
	c := client(t, corpus+"carbon/2.3.0/managed")
	table := corpus + "carbon/2.3.0/managed/managed1"
	many := func(s string, n int) []string { return strings.Split(strings.Repeat(s+"\n", n), "\n") }
	begin := time.Now()
	for i, q := range []struct {
		tool string
		args m
	}{
		{"head", m{"table": strings.Repeat("a", 8<<20)}},
		{"head", m{"table": table, "columns": many("id", 1<<15)}},
		{"count", m{"table": table, "where": "name ~ '" + strings.Repeat("(x|y)*", 1<<15) + "'"}},
		{"count", m{"table": table, "where": strings.Repeat("(", 1<<20)}},
		{"get", m{"table": table, "key": many("1", 1<<15)}},
		{"diff", m{"a": table, "b": strings.Repeat("b", 1<<20)}},
		{"finding", m{"code": strings.Repeat("x", 1<<20)}},
		{"sql", m{"query": strings.Repeat("x", 1<<20)}},
	} {
		text, failed := ask(t, c, q.tool, q.args)
		if !failed || !strings.Contains(text, "expected") || len(text) > 300 {
			t.Errorf("%d, %s: error %v: %.200s", i, q.tool, failed, text)
		}
	}
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("refusing them took %s", took)
	}
}
