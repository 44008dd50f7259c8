package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"stoa/cmd/stoa/verbs"
	"stoa/serve"
	"stoa/store"
)

const corpus = "../corpus/"

// client returns a client of the SDK, of a server of places.
func client(t *testing.T, places ...string) *sdk.ClientSession {
	t.Helper()
	here, there := sdk.NewInMemoryTransports()
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { ended <- run(ctx, places, there) }()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err, <-ended)
	}
	t.Cleanup(func() {
		c.Close()
		stop()
		<-ended
	})
	return c
}

// ask calls a tool; the answer's texts are joined.
func ask(t *testing.T, c *sdk.ClientSession, tool string, args any) (text string, failed bool) {
	t.Helper()
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return err.Error(), true
	}
	var b strings.Builder
	for _, x := range r.Content {
		fmt.Fprintln(&b, x.(*sdk.TextContent).Text)
	}
	return b.String(), r.IsError
}

type m map[string]any

// TestMain is the program itself where a test wants it in a process of its own.
func TestMain(t *testing.M) {
	if os.Getenv("STOA_AS_COMMAND") != "" {
		main()
		return
	}
	os.Exit(t.Run())
}

// TestProgram: over standard input and output, until the client goes away.
func TestProgram(t *testing.T) {
	cmd := exec.Command(os.Args[0], corpus+"carbon/2.3.0/managed/managed_del")
	cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1")
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(c.InitializeResult().Instructions, "Begin with ls") {
		t.Errorf("instructions: %q", c.InitializeResult().Instructions)
	}
	text, failed := ask(t, c, "ls", m{})
	if failed || !strings.Contains(text, `"format":"carbon"`) {
		t.Errorf("ls: error %v: %s", failed, text)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	for args, want := range map[string]int{"": 2, "missing-place": 1} {
		cmd := exec.Command(os.Args[0], strings.Fields(args)...)
		cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1")
		if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != want ||
			!strings.HasPrefix(string(out), "stoa: ") {
			t.Errorf("%q: status %d, want %d: %s", args, cmd.ProcessState.ExitCode(), want, out)
		}
	}
}

// TestTools: each tool says what the verb says in a process of its own.
func TestTools(t *testing.T) {
	dir := t.TempDir()
	try := filepath.Join(dir, "try")
	if st, err := verbs.Run(t.Context(), []string{"demo", try, "--damage"}, nil, io.Discard, io.Discard); st != 0 {
		t.Fatal(err)
	}
	c := client(t, try)
	key := filepath.Join(try, "key.cfile")
	damaged := filepath.Join(try, "damaged/key.cfile")
	kudu := filepath.Join(try, "kudu") + "#d_major"
	del := filepath.Join(try, "carbon") + "#managed_del"
	asked := map[string]bool{}
	for _, q := range []struct {
		tool string
		args m
		line string
	}{
		{"ls", m{}, "ls " + try},
		{"ls", m{"path": filepath.Join(try, "carbon")}, "ls " + filepath.Join(try, "carbon")},
		{"schema", m{"table": kudu}, "schema " + kudu},
		{"head", m{"table": kudu}, "cat -n 10 " + kudu},
		{"head", m{"table": kudu, "rows": 3, "columns": []string{"id", "b"}, "where": "id < 40"},
			"cat -n 3 -c id,b --where=id<40 " + kudu},
		{"count", m{"table": key, "where": "value > 0"}, "count --where=value>0 " + key},
		{"get", m{"table": key, "key": []string{"7"}}, "get --key 7 " + key},
		{"stats", m{"table": key}, "stats --damaged null-cells " + key},
		{"explain", m{"table": key, "where": "value > 3", "analyze": true}, "explain --where=value>3 --analyze " + key},
		{"describe", m{"table": key}, "describe " + key},
		{"verify", m{"path": key, "deep": true}, "verify --deep " + key},
		{"verify", m{"path": damaged}, "verify " + damaged},
		{"history", m{"table": del}, "history " + del},
		{"diff", m{"a": key, "b": key}, "diff " + key + " " + key},
		{"finding", m{"code": "cfile.block.checksum"}, "finding cfile.block.checksum"},
	} {
		asked[q.tool] = true
		var out, notes strings.Builder
		words := strings.Fields(q.line)
		status, _ := verbs.Run(t.Context(), slices.Insert(words, 1, "-f", "json"), nil, &out, &notes)
		want := out.String()
		if want != "" {
			want += "\n"
		}
		if status != 0 || notes.Len() > 0 || want == "" {
			want += fmt.Sprintf("status %d\n%s\n", status, strings.TrimSpace(notes.String()))
		}
		got, failed := ask(t, c, q.tool, q.args)
		if failed != (status == 1 || status == 2) || timeless(got) != timeless(want) {
			t.Errorf("%s %v: got (error: %v)\n%.600s\nwant, of stoa %s, status %d\n%.600s", q.tool, q.args, failed, got,
				q.line, status, want)
		}
	}
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range list.Tools {
		if !asked[x.Name] && x.Name != "sql" { // see TestSQL
			t.Errorf("tool %s was not asked", x.Name)
		}
		if !x.Annotations.ReadOnlyHint || x.Description == "" {
			t.Errorf("tool %s: it does not say that it only reads, or what it does", x.Name)
		}
	}
}

// timeless leaves out how long things took.
func timeless(s string) string {
	var lines []string
	for _, l := range strings.Split(s, "\n") {
		var v any
		if json.Unmarshal([]byte(l), &v) == nil && strings.Contains(l, "seconds") {
			v = without(v)
			b, _ := json.Marshal(v)
			l = string(b)
		}
		lines = append(lines, l)
	}
	return strings.Join(lines, "\n")
}

func without(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			if strings.Contains(k, "seconds") || strings.Contains(k, "time") {
				delete(v, k)
			} else {
				v[k] = without(v[k])
			}
		}
	case []any:
		for i := range v {
			v[i] = without(v[i])
		}
	}
	return v
}

// TestOutside: names that lie elsewhere, whatever they look like, give nothing of what is there.
func TestOutside(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret.csv")
	if err := os.WriteFile(secret, []byte("word\nxyzzy\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	place := filepath.Join(dir, "place")
	if err := os.CopyFS(place, os.DirFS(corpus+"carbon/2.3.0/managed/managed_del")); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"link.csv": secret, "up": dir} {
		if err := os.Symlink(to, filepath.Join(place, link)); err != nil {
			t.Fatal(err)
		}
	}
	c := client(t, place)
	for _, name := range []string{secret, place + "/../secret.csv", place + "/link.csv", place + "/up/secret.csv",
		"../secret.csv", "secret.csv", dir, dir + "/*", place + "/up#secret.csv", place + "/up/*", "/etc/passwd", "-",
		"@" + secret, "file://" + secret, "s3://bucket/x", "https://localhost/x", "--from=csv",
		"", "\x00", strings.Repeat("a/", 5000)} {
		for _, tool := range []string{"schema", "head", "count", "stats", "describe", "explain", "history"} {
			text, failed := ask(t, c, tool, m{"table": name})
			if !failed || strings.Contains(text, "xyzzy") {
				t.Errorf("%s %q: %s", tool, name, text)
			}
		}
		if text, _ := ask(t, c, "verify", m{"path": name}); name != "" &&
			(strings.Contains(text, "xyzzy") || !strings.Contains(text, "exist")) {
			t.Errorf("verify %q: %s", name, text)
		}
		if text, failed := ask(t, c, "diff", m{"a": place, "b": name}); !failed {
			t.Errorf("diff %q: %s", name, text)
		}
	}
	if err := os.Remove(filepath.Join(place, "up")); err != nil {
		t.Fatal(err)
	}
	if text, failed := ask(t, c, "count", m{"table": place}); failed || strings.TrimSpace(text) == "" {
		t.Errorf("the place itself: %s", text)
	}
}

// TestFlagsInValues: a value of an argument never becomes a flag.
func TestFlagsInValues(t *testing.T) {
	dir := t.TempDir()
	rows := filepath.Join(dir, "x.csv")
	if err := os.WriteFile(rows, []byte("a,b\n1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	c := client(t, dir)
	for _, args := range []m{{"table": rows, "columns": []string{"--output=" + out}},
		{"table": rows, "where": "--output=" + out}, {"table": "--output=" + out}} {
		if text, failed := ask(t, c, "head", args); !failed {
			t.Errorf("%v: %s", args, text)
		}
	}
	if text, failed := ask(t, c, "finding", m{"code": "--output=" + out}); !failed {
		t.Error(text)
	}
	for _, n := range []int{-1, maxRows + 1} {
		if text, failed := ask(t, c, "head", m{"table": rows, "rows": n}); !failed {
			t.Errorf("%d rows: %s", n, text)
		}
	}
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Error("something was written")
	}
}

// TestLongAnswers: what is too long is refused with a word on what to do, and soon.
func TestLongAnswers(t *testing.T) {
	dir := t.TempDir()
	long := filepath.Join(dir, "long.csv")
	rows := strings.Repeat(strings.Repeat("x", 1000)+"\n", 50_000)
	if err := os.WriteFile(long, []byte("a\n"+rows), 0o600); err != nil {
		t.Fatal(err)
	}
	c := client(t, dir)
	text, failed := ask(t, c, "head", m{"table": long, "rows": 1000})
	if !failed || !strings.Contains(text, "fewer rows") {
		t.Errorf("error %v: %.200s", failed, text)
	}
	if text, failed := ask(t, c, "head", m{"table": long, "rows": 2}); failed || !strings.Contains(text, "xxx") {
		t.Errorf("error %v: %.200s", failed, text)
	}
}

// TestPanic: a panic of a verb is an error of one call.
func TestPanic(t *testing.T) {
	tree, err := serve.NewTree([]string{t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	here, there := sdk.NewInMemoryTransports()
	started := make(chan struct{}, 100)
	srv := newServer(tree, func(ctx context.Context, tree store.Tree, args []string, out, notes io.Writer) int {
		started <- struct{}{}
		if args[0] == "ls" {
			<-ctx.Done()
			return 1
		}
		return command(ctx, panicking{tree}, args, out, notes)
	})
	go srv.Run(t.Context(), there)
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if text, failed := ask(t, c, "count", m{"table": tree.Places()[0]}); !failed || !strings.Contains(text, "a bug") {
		t.Errorf("error %v: %s", failed, text)
	}
	// Calls that a client gives up end.
	ctx, stop := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	for range 2 * maxCalls {
		calls.Go(func() { c.CallTool(ctx, &sdk.CallToolParams{Name: "ls", Arguments: m{}}) })
	}
	for range maxCalls + 1 {
		<-started
	}
	stop()
	calls.Wait()
	begin := time.Now()
	ask(t, c, "count", m{"table": tree.Places()[0]})
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("a call after those that were given up took %s", took)
	}
}

type panicking struct{ store.Tree }

func (panicking) Stat(context.Context, string) (store.Info, error) { panic("on purpose") }

// TestRandomRequests: whatever a client sends, the server answers and goes on.
func TestRandomRequests(t *testing.T) {
	dir := t.TempDir()
	try := filepath.Join(dir, "try")
	if st, err := verbs.Run(t.Context(), []string{"demo", try, "--damage"}, nil, io.Discard, io.Discard); st != 0 {
		t.Fatal(err)
	}
	c := client(t, try)
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{try, try + "/kudu", try + "/kudu#d_major", try + "/carbon", try + "/carbon#managed_del",
		try + "/flat.red", try + "/damaged/key.cfile", try + "/damaged/primitives.trv", try + "/nothing", "#", "x#y#z",
		"", "\xff", "*", try + "/*.cfile"}
	words := []string{"value > 3", "a = ", "((((", "id between 1 and 3", "'", "id in (1,2)", "value", "\x00", "7",
		"-1", "'x'", "cfile.block.checksum"}
	rnd := rand.New(rand.NewPCG(1, 2))
	pick := func(from []string) string { return from[rnd.IntN(len(from))] }
	n := 400
	if testing.Short() {
		n = 60
	}
	answers := 0
	for i := range n {
		tool := list.Tools[rnd.IntN(len(list.Tools))].Name
		args := m{}
		for _, k := range []string{"table", "path", "a", "b"} {
			if rnd.IntN(3) > 0 {
				args[k] = pick(names)
			}
		}
		for _, k := range []string{"where", "code"} {
			if rnd.IntN(3) == 0 {
				args[k] = pick(words)
			}
		}
		switch tool {
		case "ls", "verify":
			args = m{"path": pick(names)}
		case "diff":
			args = m{"a": pick(names), "b": pick(names)}
		case "finding":
			args = m{"code": pick(words)}
		case "head", "explain":
			args = m{"table": pick(names), "where": pick(words), "columns": []string{pick(words)}}
		case "get":
			args = m{"table": pick(names), "key": []string{pick(words), pick(words)}[:rnd.IntN(3)]}
		case "count":
			args = m{"table": pick(names), "where": pick(words)}
		default:
			args = m{"table": pick(names)}
		}
		if rnd.IntN(20) == 0 {
			args[pick(words)] = 7
		}
		if text, failed := ask(t, c, tool, args); !failed {
			answers++
		} else if strings.Contains(text, "a bug") || text == "" {
			t.Errorf("%d: %s %v: %s", i, tool, args, text)
		}
	}
	if answers < n/10 {
		t.Errorf("only %d of %d requests had an answer", answers, n)
	}
}

// TestSQL: a query is run by stoa-sql, which is told to read nothing but the places.
func TestSQL(t *testing.T) {
	dir, place := t.TempDir(), t.TempDir()
	tree, err := serve.NewTree([]string{place})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	here, there := sdk.NewInMemoryTransports()
	go newServer(tree, command).Run(t.Context(), there)
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	t.Setenv("PATH", dir)
	if text, failed := ask(t, c, "sql", m{"query": "select 1"}); !failed || !strings.Contains(text, "stoa-sql") {
		t.Errorf("without the program: %v %s", failed, text)
	}
	program := "#!/bin/sh\nprintf '%s\\n' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "stoa-sql"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	text, failed := ask(t, c, "sql", m{"query": "--within=/"})
	words := strings.Fields(text)
	if failed || len(words) < 4 || words[0] != "sql" || !slices.Contains(words, "--within="+place) ||
		words[len(words)-2] != "--" || words[len(words)-1] != "--within=/" {
		t.Errorf("%v %s", failed, text)
	}
	if text, failed := ask(t, c, "sql", m{"query": strings.Repeat("x", maxQuery+1)}); !failed {
		t.Errorf("a long query: %s", text)
	}
}
